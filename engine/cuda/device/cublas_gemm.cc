#include <fmt/format.h>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/cuda_kernels.h"
#include "engine/cuda/kernels/launch_turn.h"

namespace tandem::cuda {
namespace {

struct GemmTypes {
  cudaDataType_t elements;
  cublasComputeType_t compute;
};

// Half types are accumulated in f32.
GemmTypes types_of(DType dtype, DType rate) {
  switch (dtype) {
    case DType::f64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::f32:
      return {CUDA_R_32F, rate == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case DType::f16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DType::bf16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    default:
      throw RunError(fmt::format("gemm has no implementation for {} on a GPU", name_of(dtype)));
  }
}

std::int64_t leading(std::int64_t size) {
  return size < 1 ? 1 : size;
}

// Handles products without terms, whose sum is 0.
template <typename Products>
void scale_only(const Launcher& at, const Products& op) {
  if (op.beta == 0) {
    launch_fill(at.stream, op.c.dtype(), op.c.data(), 0, op.c.element_count());
  } else {
    launch_scale_add(at.stream, op.c.dtype(), op.c.data(), op.c.data(), op.beta, 0, op.c.element_count());
  }
}

// The library chooses its kernel by these.
template <typename Products>
std::size_t kernel_number(const Products& op, const GemmTypes& types, std::int64_t count) {
  std::size_t number = static_cast<std::size_t>(types.elements) * 1024 + static_cast<std::size_t>(types.compute);
  for (const std::int64_t part : {op.m, op.n, op.k, std::int64_t{op.transpose_a}, std::int64_t{op.transpose_b},
                                  std::int64_t{op.beta == 0}, count}) {
    number = number * 1'000'003 + static_cast<std::size_t>(part);
  }
  return number;
}

// What a call gets beside the sizes. cuBLAS is column-major and sees the transposes, so that it computes c' = b' a'.
template <typename Products>
struct ProductArguments {
  explicit ProductArguments(const Products& op)
      : transpose_a(op.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N),
        transpose_b(op.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N),
        lda(leading(op.transpose_a ? op.m : op.k)),
        ldb(leading(op.transpose_b ? op.k : op.n)),
        narrow_alpha(static_cast<float>(op.alpha)),
        narrow_beta(static_cast<float>(op.beta)),
        alpha(op.c.dtype() == DType::f64 ? static_cast<const void*>(&op.alpha) : &narrow_alpha),
        beta(op.c.dtype() == DType::f64 ? static_cast<const void*>(&op.beta) : &narrow_beta) {}
  ProductArguments(const ProductArguments&) = delete;
  ProductArguments& operator=(const ProductArguments&) = delete;

  const cublasOperation_t transpose_a, transpose_b;
  const std::int64_t lda, ldb;
  const float narrow_alpha, narrow_beta;
  const void *const alpha, *const beta;
};

}  // namespace

void launch_gemm(const Launcher& at, const kernel::Gemm& op, DType rate) {
  const GemmTypes types = types_of(op.c.dtype(), rate);
  if (op.m == 0 || op.n == 0) return;
  if (op.k == 0) return scale_only(at, op);
  const ProductArguments arguments(op);
  const FirstLaunch first(kernel_number(op, types, 1));
  for (std::int64_t time = 0; time < op.repeats; ++time) {
    check(
        cublasGemmEx_64(at.blas, arguments.transpose_b, arguments.transpose_a, op.n, op.m, op.k, arguments.alpha,
                        op.b.data(), types.elements, arguments.ldb, op.a.data(), types.elements, arguments.lda,
                        arguments.beta, op.c.data(), types.elements, leading(op.n), types.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }
}

void launch_batched_gemm(const Launcher& at, const kernel::BatchedGemm& op, DType rate) {
  const GemmTypes types = types_of(op.c.dtype(), rate);
  if (op.count == 0 || op.m == 0 || op.n == 0) return;
  if (op.k == 0) return scale_only(at, op);
  const ProductArguments arguments(op);
  const FirstLaunch first(kernel_number(op, types, op.count));
  check(cublasGemmStridedBatchedEx_64(at.blas, arguments.transpose_b, arguments.transpose_a, op.n, op.m, op.k,
                                      arguments.alpha, op.b.data(), types.elements, arguments.ldb, op.k * op.n,
                                      op.a.data(), types.elements, arguments.lda, op.m * op.k, arguments.beta,
                                      op.c.data(), types.elements, leading(op.n), op.m * op.n, op.count, types.compute,
                                      CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace tandem::cuda
