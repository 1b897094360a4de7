#include "engine/cuda/device/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(CudaError, NamesTheCallThePlaceAndTheReason) {
  EXPECT_EQ(error_text(cudaErrorMemoryAllocation, "cudaMalloc", "GPU 0"),
            "cudaMalloc on GPU 0: out of memory (cudaErrorMemoryAllocation)");
  EXPECT_EQ(error_text(cudaErrorNotReady, "cudaEventQuery"), "cudaEventQuery: device not ready (cudaErrorNotReady)");
}

TEST(CudaError, NamesWhatCublasAndNcclReport) {
  EXPECT_EQ(error_text(CUBLAS_STATUS_NOT_INITIALIZED, "cublasCreate"),
            "cublasCreate: the library was not initialized (CUBLAS_STATUS_NOT_INITIALIZED)");
  EXPECT_THAT(error_text(ncclInvalidUsage, "ncclAllReduce", "rank 1"),
              AllOf(StartsWith("ncclAllReduce on rank 1: invalid usage"), HasSubstr("(ncclInvalidUsage)")));
}

TEST(CudaError, OnlyFailuresAreThrown) {
  check(cudaSuccess, "cudaMalloc");
  check(CUBLAS_STATUS_SUCCESS, "cublasCreate");
  check(ncclSuccess, "ncclAllReduce");
  EXPECT_THROW(check(cudaErrorInvalidValue, "cudaMalloc"), RunError);
  EXPECT_THROW(check(CUBLAS_STATUS_EXECUTION_FAILED, "cublasGemmEx"), RunError);
  EXPECT_THROW(check(ncclSystemError, "ncclAllReduce"), RunError);
}

}  // namespace
}  // namespace tandem::cuda
