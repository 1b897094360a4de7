// The words of nccl-tests on a command line: sizes, collectives, and element types.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem {

CLI::Validator sweep_size();       // "64K"; becomes its number of bytes
CLI::Validator collective_name();  // "alltoall_perf"; becomes Tandem's name
CLI::Validator nccl_dtype();       // "half"

}  // namespace tandem
