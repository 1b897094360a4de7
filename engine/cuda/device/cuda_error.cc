#include "engine/cuda/device/cuda_error.h"

#include <fmt/format.h>

#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

std::string text(std::string_view call, std::string_view where, std::string_view reason, std::string_view name) {
  return fmt::format("{}{}{}: {} ({})", call, where.empty() ? "" : " on ", where, reason, name);
}

// NCCL's last message names the rank and the system's reason, where it knows them.
std::string nccl_reason(ncclResult_t result) {
  const std::string_view detail = ncclGetLastError(nullptr);
  return detail.empty() ? ncclGetErrorString(result) : fmt::format("{}; {}", ncclGetErrorString(result), detail);
}

std::string_view nccl_name(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    default:
      return "ncclResult_t";
  }
}

}  // namespace

std::string error_text(cudaError_t error, std::string_view call, std::string_view where) {
  return text(call, where, cudaGetErrorString(error), cudaGetErrorName(error));
}

std::string error_text(cublasStatus_t status, std::string_view call, std::string_view where) {
  return text(call, where, cublasGetStatusString(status), cublasGetStatusName(status));
}

std::string error_text(ncclResult_t result, std::string_view call, std::string_view where) {
  return text(call, where, nccl_reason(result), nccl_name(result));
}

void check(cudaError_t error, std::string_view call, std::string_view where) {
  if (error != cudaSuccess) throw RunError(error_text(error, call, where));
}

void check(cublasStatus_t status, std::string_view call, std::string_view where) {
  if (status != CUBLAS_STATUS_SUCCESS) throw RunError(error_text(status, call, where));
}

void check(ncclResult_t result, std::string_view call, std::string_view where) {
  if (result != ncclSuccess && result != ncclInProgress) throw RunError(error_text(result, call, where));
}

}  // namespace tandem::cuda
