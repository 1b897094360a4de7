// Turns what CUDA, cuBLAS and NCCL report into errors that name the call, who made it and the reason.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <string>
#include <string_view>

namespace tandem::cuda {

// "cudaMalloc on GPU 0: out of memory (cudaErrorMemoryAllocation)". `where` may be empty.
std::string error_text(cudaError_t error, std::string_view call, std::string_view where = {});
std::string error_text(cublasStatus_t status, std::string_view call, std::string_view where = {});
std::string error_text(ncclResult_t result, std::string_view call, std::string_view where = {});

// Each throws RunError unless the call succeeded. An NCCL call that is still in progress counts as successful.
void check(cudaError_t error, std::string_view call, std::string_view where = {});
void check(cublasStatus_t status, std::string_view call, std::string_view where = {});
void check(ncclResult_t result, std::string_view call, std::string_view where = {});

}  // namespace tandem::cuda
