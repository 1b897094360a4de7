// From an op to what runs on a GPU: our own kernels, and cuBLAS for matrix products.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "engine/cuda/kernels.h"
#include "engine/op.h"

namespace tandem::cuda {

// Where memory is: the number of a GPU, or the host, whose pinned memory every GPU reaches.
inline constexpr int kHostPlace = -1;
int place_of(const Tensor& tensor);

// Throws RunError for an operand that work at `place` cannot reach, or without values. `place_of` is a parameter so
// that it can be checked without a GPU.
void check_operands(const Kernel& kernel, int place, int (*place_of)(const Tensor&) = cuda::place_of);

struct Launcher {
  cudaStream_t stream{};
  cublasHandle_t blas{};
  Fault* fault = nullptr;
};

// Issues every kernel but host functions. Operands have been checked; the launch itself is checked here.
void launch(const Launcher& launcher, const Op& op);

// What a kernel has found wrong: "row 1 has label 2, must be from 0 to 1".
std::string fault_text(const Fault& fault);

// cublas_gemm.cc. `rate`: tf32 lets products of f32 run at that rate.
void launch_gemm(const Launcher& launcher, const kernel::Gemm& gemm, DType rate);

}  // namespace tandem::cuda
