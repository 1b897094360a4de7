// cuBLAS: products of matrices on a stream, by plain loops.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/streams.h"

using namespace tandem::emulation;

struct cublasContext {
  int gpu = 0;
  cudaStream_t stream = nullptr;
  int math_mode = CUBLAS_DEFAULT_MATH;
};

namespace {

struct Operand {
  const void* at;
  std::int64_t rows, columns, leading;  // column-major, as stored
  bool is_transposed;
  std::int64_t distance = 0;  // to the operand of the next product

  std::size_t elements() const {
    return rows == 0 || columns == 0 ? 0 : static_cast<std::size_t>(leading * (columns - 1) + rows);
  }
};

struct Product {
  Operand a, b, c;
  std::int64_t m, n, k;
  std::int64_t count;  // of products, one after the other
  double alpha, beta;
  cudaDataType_t type;
  bool rounds_to_tf32;
  bool reduces_in_type;  // splits k and adds the parts in the type of c, which the default mode allows
};

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// 10 of the 23 bits behind the point, to the nearest even one.
float as_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFF + ((bits >> 13) & 1)) & ~std::uint32_t{0x1FFF});
}

// In rows of what the product sees, so that the innermost loop goes along memory.
template <typename T>
std::vector<Wide<T>> row_major(const Operand& operand, bool is_transposed, bool rounds) {
  const std::int64_t rows = is_transposed ? operand.columns : operand.rows;
  const std::int64_t columns = is_transposed ? operand.rows : operand.columns;
  std::vector<Wide<T>> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = is_transposed ? row * operand.leading + column : column * operand.leading + row;
      auto value = static_cast<Wide<T>>(static_cast<const T*>(operand.at)[at]);
      if constexpr (std::is_same_v<T, float>) value = rounds ? as_tf32(value) : value;
      values[static_cast<std::size_t>(row * columns + column)] = value;
    }
  }
  return values;
}

template <typename T>
T narrowed(Wide<T> value) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

constexpr std::int64_t kSplit = 256;

// c' = b' a', whose rows are the columns of c.
template <typename T>
void multiply(const Product& product) {
  using W = Wide<T>;
  const std::vector<W> a = row_major<T>(product.a, !product.a.is_transposed, product.rounds_to_tf32);
  const std::vector<W> b = row_major<T>(product.b, !product.b.is_transposed, product.rounds_to_tf32);
  std::vector<W> sums(static_cast<std::size_t>(product.m));
  for (std::int64_t column = 0; column < product.n; ++column) {
    std::fill(sums.begin(), sums.end(), W{0});
    for (std::int64_t i = 0; i < product.k; ++i) {
      const W factor = b[static_cast<std::size_t>(column * product.k + i)];
      const W* values = &a[static_cast<std::size_t>(i * product.m)];
      for (std::int64_t row = 0; row < product.m; ++row) sums[static_cast<std::size_t>(row)] += factor * values[row];
      if (!product.reduces_in_type || (i + 1) % kSplit != 0) continue;
      for (W& sum : sums) sum = static_cast<W>(narrowed<T>(sum));
    }
    T* to = static_cast<T*>(const_cast<void*>(product.c.at)) + column * product.c.leading;
    for (std::int64_t row = 0; row < product.m; ++row) {
      W value = static_cast<W>(product.alpha) * sums[static_cast<std::size_t>(row)];
      if (product.beta != 0) value += static_cast<W>(product.beta) * static_cast<W>(to[row]);
      to[row] = narrowed<T>(value);
    }
  }
}

// Product number `index` alone.
Product one_of(Product product, std::int64_t index, std::size_t size) {
  for (Operand* operand : {&product.a, &product.b, &product.c}) {
    operand->at = static_cast<const char*>(operand->at) + static_cast<std::size_t>(index * operand->distance) * size;
  }
  return product;
}

cudaError_t execute_one(const Product& product, std::size_t size, int gpu) {
  for (const Operand* operand : {&product.a, &product.b, &product.c}) {
    if (const cudaError_t error = check_access(operand->at, operand->elements() * size, gpu)) return error;
  }
  switch (product.type) {
    case CUDA_R_64F:
      multiply<double>(product);
      break;
    case CUDA_R_32F:
      multiply<float>(product);
      break;
    case CUDA_R_16F:
      multiply<__half>(product);
      break;
    default:
      multiply<__nv_bfloat16>(product);
  }
  return cudaSuccess;
}

cudaError_t execute(const Product& product, int gpu) {
  const std::size_t size = product.type == CUDA_R_64F ? 8 : product.type == CUDA_R_32F ? 4 : 2;
  for (std::int64_t index = 0; index < product.count; ++index) {
    if (const cudaError_t error = execute_one(one_of(product, index, size), size, gpu)) return error;
  }
  return cudaSuccess;
}

bool is_emulated(cudaDataType_t type, cublasComputeType_t compute) {
  switch (type) {
    case CUDA_R_64F:
      return compute == CUBLAS_COMPUTE_64F;
    case CUDA_R_32F:
      return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return compute == CUBLAS_COMPUTE_32F;
    default:
      return false;
  }
}

// What the calls for one product and for several have in common.
cublasStatus_t issue_products(cublasHandle_t handle, Product product, const void* alpha, const void* beta,
                              cublasComputeType_t compute) {
  if (handle == nullptr || handle->stream == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  for (const Operand& operand : {product.a, product.b, product.c}) {
    if (operand.rows < 0 || operand.columns < 0 || operand.leading < std::max<std::int64_t>(1, operand.rows)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (product.count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_emulated(product.type, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (handle->gpu != current_gpu() || handle->stream->gpu != handle->gpu) return CUBLAS_STATUS_EXECUTION_FAILED;
  const auto factor = [&](const void* at) {
    return product.type == CUDA_R_64F ? *static_cast<const double*>(at)
                                      : static_cast<double>(*static_cast<const float*>(at));
  };
  product.alpha = factor(alpha);
  product.beta = factor(beta);
  product.rounds_to_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  product.reduces_in_type = (handle->math_mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0;
  std::size_t shape = static_cast<std::size_t>(product.type);
  for (const std::int64_t number : {product.m, product.n, product.k, product.count,
                                    std::int64_t{product.a.is_transposed}, std::int64_t{product.b.is_transposed}}) {
    shape = shape * 1'000'003 + static_cast<std::size_t>(number);
  }
  const LoadingKernel loading(handle->gpu, shape);  // cuBLAS has many, and chooses by shape
  const cudaError_t error = issue(handle->stream, {[product, gpu = handle->gpu] { return execute(product, gpu); }});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

Product product_of(cublasOperation_t transpose_a, cublasOperation_t transpose_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, cudaDataType_t type) {
  const bool flips_a = transpose_a != CUBLAS_OP_N, flips_b = transpose_b != CUBLAS_OP_N;
  return {.a = {nullptr, flips_a ? k : m, flips_a ? m : k, 0, flips_a},
          .b = {nullptr, flips_b ? n : k, flips_b ? k : n, 0, flips_b},
          .c = {nullptr, m, n, 0, false},
          .m = m,
          .n = n,
          .k = k,
          .count = 1,
          .alpha = 0,
          .beta = 0,
          .type = type,
          .rounds_to_tf32 = false,
          .reduces_in_type = false};
}

void place(Operand& operand, const void* at, std::int64_t leading, std::int64_t distance) {
  operand.at = at;
  operand.leading = leading;
  operand.distance = distance;
}

cublasStatus_t entered_blas(const char* call) {
  return static_cast<cublasStatus_t>(injected(call));
}

}  // namespace

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (const cublasStatus_t status = entered_blas("cublasGetProperty")) return status;
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (const cublasStatus_t status = entered_blas("cublasCreate")) return status;
  if (may_disturb() != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;  // it allocates
  const Synchronising synchronising("cublasCreate");
  *handle = new cublasContext{current_gpu()};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const Synchronising synchronising("cublasDestroy");
  wait_for_gpu(handle->gpu);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (const cublasStatus_t status = entered_blas("cublasSetStream")) return status;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (const cublasStatus_t status = entered_blas("cublasSetWorkspace")) return status;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return check_access(workspace, bytes, handle->gpu) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                    : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math_mode = mode;
  return entered_blas("cublasSetMathMode");
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b,
                               std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha, const void* a,
                               cudaDataType_t a_type, std::int64_t lda, const void* b, cudaDataType_t b_type,
                               std::int64_t ldb, const void* beta, void* c, cudaDataType_t c_type, std::int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (const cublasStatus_t status = entered_blas("cublasGemmEx")) return status;
  if (a_type != c_type || b_type != c_type) return CUBLAS_STATUS_NOT_SUPPORTED;
  Product product = product_of(transpose_a, transpose_b, m, n, k, c_type);
  place(product.a, a, lda, 0);
  place(product.b, b, ldb, 0);
  place(product.c, c, ldc, 0);
  return issue_products(handle, product, alpha, beta, compute);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transpose_a,
                                             cublasOperation_t transpose_b, std::int64_t m, std::int64_t n,
                                             std::int64_t k, const void* alpha, const void* a, cudaDataType_t a_type,
                                             std::int64_t lda, long long a_distance, const void* b,
                                             cudaDataType_t b_type, std::int64_t ldb, long long b_distance,
                                             const void* beta, void* c, cudaDataType_t c_type, std::int64_t ldc,
                                             long long c_distance, std::int64_t count, cublasComputeType_t compute,
                                             cublasGemmAlgo_t) {
  if (const cublasStatus_t status = entered_blas("cublasGemmStridedBatchedEx")) return status;
  if (a_type != c_type || b_type != c_type) return CUBLAS_STATUS_NOT_SUPPORTED;
  Product product = product_of(transpose_a, transpose_b, m, n, k, c_type);
  place(product.a, a, lda, a_distance);
  place(product.b, b, ldb, b_distance);
  place(product.c, c, ldc, c_distance);
  product.count = count;
  return issue_products(handle, product, alpha, beta, compute);
}

namespace {

struct StatusTexts {
  const char *name, *text;
};

const StatusTexts& texts_of(cublasStatus_t status) {
  static const std::map<cublasStatus_t, StatusTexts> kTexts{
      {CUBLAS_STATUS_SUCCESS, {"CUBLAS_STATUS_SUCCESS", "success"}},
      {CUBLAS_STATUS_NOT_INITIALIZED, {"CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"}},
      {CUBLAS_STATUS_ALLOC_FAILED, {"CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"}},
      {CUBLAS_STATUS_INVALID_VALUE, {"CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used"}},
      {CUBLAS_STATUS_EXECUTION_FAILED, {"CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"}},
      {CUBLAS_STATUS_NOT_SUPPORTED, {"CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"}}};
  static const StatusTexts kUnknown{"CUBLAS_STATUS", "an unknown status"};
  const auto found = kTexts.find(status);
  return found == kTexts.end() ? kUnknown : found->second;
}

}  // namespace

const char* cublasGetStatusName(cublasStatus_t status) {
  return texts_of(status).name;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return texts_of(status).text;
}
