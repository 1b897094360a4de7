#include "engine/kernels/gemm.h"

#include <cblas.h>
#include <fmt/format.h>

#include <limits>
#include <mutex>
#include <string_view>

#include "engine/kernels/element_types.h"

namespace tandem {
namespace {

// Streams run in parallel, one thread each; a BLAS with threads of its own would take cores from other devices.
void restrict_to_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

blasint blas_size(std::int64_t size) {
  if (size > std::numeric_limits<blasint>::max()) {
    throw RunError(fmt::format("a matrix dimension of {} is more than this BLAS can index ({})", size,
                               std::numeric_limits<blasint>::max()));
  }
  return static_cast<blasint>(size);
}

// Leading dimensions are at least 1, even of empty matrices.
blasint leading(std::int64_t size) {
  return blas_size(size < 1 ? 1 : size);
}

// Number `index` of the products of an op, of matrices that follow each other in memory.
template <typename Products>
void multiply(const Products& op, std::int64_t index, const char* name) {
  const CBLAS_TRANSPOSE transpose_a = op.transpose_a ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE transpose_b = op.transpose_b ? CblasTrans : CblasNoTrans;
  const blasint m = blas_size(op.m), n = blas_size(op.n), k = blas_size(op.k);
  const blasint lda = leading(op.transpose_a ? op.m : op.k), ldb = leading(op.transpose_b ? op.k : op.n);
  const std::int64_t a = index * op.m * op.k, b = index * op.k * op.n, c = index * op.m * op.n;
  if (op.c.dtype() == DType::f32) {
    cblas_sgemm(CblasRowMajor, transpose_a, transpose_b, m, n, k, static_cast<float>(op.alpha),
                elements<float>(op.a) + a, lda, elements<float>(op.b) + b, ldb, static_cast<float>(op.beta),
                elements<float>(op.c) + c, leading(op.n));
  } else if (op.c.dtype() == DType::f64) {
    cblas_dgemm(CblasRowMajor, transpose_a, transpose_b, m, n, k, op.alpha, elements<double>(op.a) + a, lda,
                elements<double>(op.b) + b, ldb, op.beta, elements<double>(op.c) + c, leading(op.n));
  } else {
    throw_unsupported(name, op.c.dtype());
  }
}

}  // namespace

void execute_gemm(const kernel::Gemm& op) {
  restrict_to_one_thread();
  for (std::int64_t time = 0; time < op.repeats; ++time) multiply(op, 0, "gemm");
}

void execute_batched_gemm(const kernel::BatchedGemm& op) {
  restrict_to_one_thread();
  for (std::int64_t index = 0; index < op.count; ++index) multiply(op, index, "batched_gemm");
}

std::string blas_description() {
  restrict_to_one_thread();
  std::string_view config = openblas_get_config();
  while (!config.empty() && config.back() == ' ') config.remove_suffix(1);
  return fmt::format("{}, core {}, 1 thread", config, openblas_get_corename());
}

std::string blas_version() {
  constexpr std::string_view kName = "OpenBLAS ";
  std::string_view config = openblas_get_config();
  if (config.starts_with(kName)) config.remove_prefix(kName.size());
  return std::string(config.substr(0, config.find(' ')));
}

}  // namespace tandem
