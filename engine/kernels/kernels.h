// The reference implementation of every kernel: executes it on host memory, on the calling thread.
//
// GEMM is OpenBLAS restricted to one thread; the rest are loops the compiler vectorises.
#pragma once

#include "engine/collective.h"
#include "engine/op.h"

namespace tandem {

// Executes the kernel. All operands must have values in host-accessible memory.
void execute(const Kernel& kernel);

// to[i] = reduction(to[i], from[i]) over `count` elements of `dtype`; the inner loop of collectives.
void accumulate(DType dtype, Reduction reduction, void* to, const void* from, std::int64_t count);

}  // namespace tandem
