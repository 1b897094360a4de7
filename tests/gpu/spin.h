// A kernel that never ends, unless somebody writes to `stop`, in pinned memory.
#pragma once

#include <cuda_runtime.h>

namespace tandem {

void launch_spin(cudaStream_t stream, const int* stop);

}  // namespace tandem
