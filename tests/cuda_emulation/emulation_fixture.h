// What the tests of the emulation itself share: two GPUs, and shorthands that must not fail.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "engine/cuda/kernels/kernels.h"
#include "tests/cuda_emulation/emulation.h"

namespace tandem::emulation {

class Emulation : public testing::Test {
 protected:
  void SetUp() override { begin({.gpus = 2}); }
  void TearDown() override {
    release_gpus();
    begin(machine_of_environment());
    cudaSetDevice(0);
  }
  static void begin(const Machine& machine) {
    start(machine);
    cudaSetDevice(0);
    cudaGetLastError();
  }
  static cudaStream_t make_stream(int gpu) {
    cudaSetDevice(gpu);
    cudaStream_t stream{};
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
  }
  static cudaEvent_t make_event() {
    cudaEvent_t event{};
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
  }
  static int* make_ints(cudaStream_t stream, int count = 16) {
    void* block = nullptr;
    EXPECT_EQ(cudaMallocAsync(&block, static_cast<std::size_t>(count) * sizeof(int), stream), cudaSuccess);
    return static_cast<int*>(block);
  }
  static int* make_pinned() {
    void* block = nullptr;
    EXPECT_EQ(cudaHostAlloc(&block, 16 * sizeof(int), cudaHostAllocPortable), cudaSuccess);
    return static_cast<int*>(block);
  }
  static void fill(cudaStream_t stream, int* to, int value) { cuda::launch_fill(stream, DType::i32, to, value, 16); }
  static int first_of(cudaStream_t stream, const int* from) {
    int value = 0;
    EXPECT_EQ(cudaMemcpyAsync(&value, from, sizeof(value), cudaMemcpyDefault, stream), cudaSuccess);
    return value;
  }
};

}  // namespace tandem::emulation
