// Reads traces of PyTorch's profiler (Kineto), one file for each rank, plain or as gzip files.
#pragma once

#include "scenarios/import/traces/trace.h"

namespace tandem {

// Reads a file as a stream; the memory used grows with the number of kernels, not with the file. Throws InputError.
RankTrace read_kineto(const InputFile& file);

}  // namespace tandem
