// Matrix multiplication, through OpenBLAS on the calling thread alone.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_gemm(const kernel::Gemm& gemm);
void execute_batched_gemm(const kernel::BatchedGemm& gemm);

}  // namespace tandem
