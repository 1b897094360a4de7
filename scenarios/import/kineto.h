// Traces of PyTorch's profiler (Kineto), one rank a file, plain or as gzip files.
#pragma once

#include "scenarios/import/trace.h"

namespace tandem {

// Reads the file as a stream: what is kept grows with the kernels, not with the file. Throws InputError.
RankTrace read_kineto(const std::filesystem::path& file);

}  // namespace tandem
