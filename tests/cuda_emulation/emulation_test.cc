// The emulation itself: where it would let a mistake pass, the tests of the engine would too.
#include <cublas_v2.h>

#include <array>

#include "tests/cuda_emulation/emulation_fixture.h"

namespace tandem::emulation {
namespace {

TEST_F(Emulation, StreamsWorkByThemselvesAndEventsOrderThem) {
  cudaStream_t first = make_stream(1), second = make_stream(0);
  int* block = make_ints(second);
  hang_gpu(1);
  cudaSetDevice(1);
  cudaEvent_t event = make_event();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, second), cudaErrorInvalidResourceHandle) << "of another GPU";
  ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  cudaSetDevice(0);
  fill(second, block, 3);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);  // who waits has the former recording
  release_gpus();
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(first_of(second, block), 3);
}

TEST_F(Emulation, NothingIsReadWhereItHasNotBeenWritten) {
  cudaStream_t stream = make_stream(0);
  int* block = make_ints(stream);
  EXPECT_EQ(first_of(stream, block), static_cast<int>(0xEEEEEEEE));
}

TEST_F(Emulation, FreedMemoryIsOutOfReachFromThenOn) {
  cudaStream_t stream = make_stream(0);
  int *block = make_ints(stream), *pinned = make_pinned();
  fill(stream, block, 5);
  ASSERT_EQ(cudaMemcpyAsync(pinned, block, 64, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(block, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 5);
  fill(stream, block, 6);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the launch knows nothing of it";
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress) << "it stays";
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
}

TEST_F(Emulation, CopiesStayWithinTheirBlocks) {
  cudaStream_t stream = make_stream(0);
  int *block = make_ints(stream), *pinned = make_pinned();
  EXPECT_EQ(cudaMemcpyAsync(pinned, block, 64, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "told once";
  ASSERT_EQ(cudaMemcpyAsync(pinned, block, 65, cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

TEST_F(Emulation, PageableMemoryIsReadAtOnceAndPinnedMemoryLater) {
  cudaStream_t stream = make_stream(0);
  int *block = make_ints(stream), *pinned = make_pinned();
  int pageable = 1;
  pinned[0] = 1;
  hang_gpu(0);
  ASSERT_EQ(cudaMemcpyAsync(block, &pageable, sizeof(int), cudaMemcpyDefault, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(block + 1, pinned, sizeof(int), cudaMemcpyDefault, stream), cudaSuccess);
  pageable = pinned[0] = 2;
  release_gpus();
  EXPECT_EQ(first_of(stream, block), 1);
  EXPECT_EQ(first_of(stream, block + 1), 2);
}

TEST_F(Emulation, GpusReachEachOthersMemoryOnlyWhereTheyAreLetIn) {
  cudaStream_t on_0 = make_stream(0), on_1 = make_stream(1);
  int* block = make_ints(on_1);
  ASSERT_EQ(cudaStreamSynchronize(on_1), cudaSuccess);
  cudaMemPool_t pool{};
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  ASSERT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
  cudaSetDevice(0);
  fill(on_0, block, 4);
  ASSERT_EQ(cudaStreamSynchronize(on_0), cudaSuccess);
  access.flags = cudaMemAccessFlagsProtNone;
  ASSERT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
  int* here = make_ints(on_0);
  ASSERT_EQ(cudaMemcpyPeerAsync(here, 0, block, 1, 64, on_0), cudaSuccess) << "a copy needs no access";
  EXPECT_EQ(first_of(on_0, here), 4);
  fill(on_0, block, 5);
  EXPECT_EQ(cudaStreamSynchronize(on_0), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(on_1), cudaSuccess) << "the other GPU is well";
}

TEST_F(Emulation, KernelsStartOnTheCurrentGpuOnly) {
  cudaStream_t stream = make_stream(1);
  int* block = make_ints(stream);
  cudaSetDevice(0);
  fill(stream, block, 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

TEST_F(Emulation, MemoryHasAnEnd) {
  begin({.gpus = 1, .memory_bytes = 1000});
  cudaStream_t stream = make_stream(0);
  int* block = make_ints(stream, 200);
  void* more = nullptr;
  EXPECT_EQ(cudaMallocAsync(&more, 300, stream), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaFreeAsync(block, stream), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&more, 300, stream), cudaSuccess) << "what the stream frees it may take again";
  cudaFreeAsync(more, stream);
}

TEST_F(Emulation, Tf32RoundsItsOperandsToTenBits) {
  cudaStream_t stream = make_stream(0);
  float *operands = nullptr, *result = nullptr;
  void *a = make_ints(stream), *c = make_ints(stream);
  operands = static_cast<float*>(a);
  result = static_cast<float*>(c);
  const std::array<float, 2> values{1 + 1.0F / 1024 + 1.0F / 4096, 2};
  ASSERT_EQ(cudaMemcpyAsync(operands, values.data(), sizeof(values), cudaMemcpyDefault, stream), cudaSuccess);
  cublasHandle_t blas{};
  ASSERT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(blas, stream), CUBLAS_STATUS_SUCCESS);
  const float alpha = 1, beta = 0;
  for (const auto& [compute, expected] :
       {std::pair{CUBLAS_COMPUTE_32F, 2 * values[0]}, {CUBLAS_COMPUTE_32F_FAST_TF32, 2 * (1 + 1.0F / 1024)}}) {
    ASSERT_EQ(cublasGemmEx_64(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, operands, CUDA_R_32F, 1, operands + 1,
                              CUDA_R_32F, 1, &beta, result, CUDA_R_32F, 1, compute, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    float product = 0;
    ASSERT_EQ(cudaMemcpyAsync(&product, result, sizeof(product), cudaMemcpyDefault, stream), cudaSuccess);
    EXPECT_EQ(product, expected);
  }
  cublasDestroy(blas);
}

}  // namespace
}  // namespace tandem::emulation
