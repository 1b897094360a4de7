// Matrix multiplication, through OpenBLAS on the calling thread alone.
#pragma once

#include <string>

#include "engine/op.h"

namespace tandem {

void execute_gemm(const kernel::Gemm& gemm);
void execute_batched_gemm(const kernel::BatchedGemm& gemm);

// Says what multiplies matrices, for Timeline::settings: "OpenBLAS 0.3.21 ..., core Zen, 1 thread".
std::string blas_description();
std::string blas_version();  // "0.3.21"

}  // namespace tandem
