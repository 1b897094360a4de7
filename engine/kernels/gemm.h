// Matrix multiplication, through OpenBLAS on the calling thread alone.
#pragma once

#include "engine/op.h"

namespace tandem {

void execute_gemm(const kernel::Gemm& gemm);

}  // namespace tandem
