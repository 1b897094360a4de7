#include "engine/cuda/cublas_library.h"

#include <cublas_v2.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "topologies/base/error.h"

namespace tandem::cuda {

CublasLibrary::CublasLibrary(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    throw UnavailableError(
        fmt::format("engine 'cuda': cuBLAS cannot be loaded ({}); this program was built with cuBLAS {}.{}, and "
                    "LD_LIBRARY_PATH can name the folder that has it",
                    dlerror(), CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR));
  }
}

const CublasLibrary& CublasLibrary::get() {
  static const CublasLibrary library(fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR));
  return library;
}

void* CublasLibrary::address_of(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr) {
    throw UnavailableError(fmt::format("engine 'cuda': this cuBLAS has no {} ({})", name, dlerror()));
  }
  return address;
}

namespace {

template <typename Function>
Function* loaded(const char* name, Function* /*same_type*/) {
  return reinterpret_cast<Function*>(CublasLibrary::get().address_of(name));
}

}  // namespace
}  // namespace tandem::cuda

// The library's function of the same name as the one that is called here, looked up once.
#define TANDEM_PASS_ON(name, ...)                                   \
  static auto* const function = tandem::cuda::loaded(#name, &name); \
  return function(__VA_ARGS__)

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  TANDEM_PASS_ON(cublasGetProperty, type, value);
}

const char* cublasGetStatusName(cublasStatus_t status) {
  TANDEM_PASS_ON(cublasGetStatusName, status);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  TANDEM_PASS_ON(cublasGetStatusString, status);
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  TANDEM_PASS_ON(cublasCreate_v2, handle);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  TANDEM_PASS_ON(cublasDestroy_v2, handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  TANDEM_PASS_ON(cublasSetStream_v2, handle, stream);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  TANDEM_PASS_ON(cublasSetWorkspace_v2, handle, workspace, bytes);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  TANDEM_PASS_ON(cublasSetMathMode, handle, mode);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b,
                               int64_t m, int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                               int64_t lda, const void* b, cudaDataType b_type, int64_t ldb, const void* beta, void* c,
                               cudaDataType c_type, int64_t ldc, cublasComputeType_t compute,
                               cublasGemmAlgo_t algorithm) {
  TANDEM_PASS_ON(cublasGemmEx_64, handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                 beta, c, c_type, ldc, compute, algorithm);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transpose_a,
                                             cublasOperation_t transpose_b, int64_t m, int64_t n, int64_t k,
                                             const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
                                             long long a_distance, const void* b, cudaDataType b_type, int64_t ldb,
                                             long long b_distance, const void* beta, void* c, cudaDataType c_type,
                                             int64_t ldc, long long c_distance, int64_t count,
                                             cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  TANDEM_PASS_ON(cublasGemmStridedBatchedEx_64, handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, lda,
                 a_distance, b, b_type, ldb, b_distance, beta, c, c_type, ldc, c_distance, count, compute, algorithm);
}
