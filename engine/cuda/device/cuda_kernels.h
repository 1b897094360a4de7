// Launches an op on a GPU: by the engine's own kernels, and by cuBLAS for matrix products.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "engine/cuda/kernels/kernels.h"
#include "engine/op.h"

namespace tandem::cuda {

// The place of memory: the number of a GPU, or the host, whose pinned memory every GPU reaches.
inline constexpr int kHostPlace = -1;
int place_of(const Tensor& tensor);

// Throws RunError for an operand without values or one that work at `place` cannot reach. `place_of` is a parameter so
// that tests need no GPU.
void check_operands(const Kernel& kernel, int place, int (*place_of)(const Tensor&) = cuda::place_of);

struct Launcher {
  cudaStream_t stream{};
  cublasHandle_t blas{};
  Fault* fault = nullptr;
  Scratch scratch{};
};

// Launches any kernel but a host function, whose operands have been checked. Throws RunError when the launch fails.
void launch(const Launcher& launcher, const Op& op);

// Says what a kernel found wrong: "row 1 has label 2, must be from 0 to 1".
std::string fault_text(const Fault& fault);

// cublas_gemm.cc. `rate`: tf32 lets products of f32 run at that rate.
void launch_gemm(const Launcher& launcher, const kernel::Gemm& gemm, DType rate);
void launch_batched_gemm(const Launcher& launcher, const kernel::BatchedGemm& gemm, DType rate);

}  // namespace tandem::cuda
