// Failures on purpose, on real GPUs and on emulated ones: each must end with an error that names it, and in time.
#include <chrono>

#include "engine/cuda/device/cuda_stream.h"
#include "tests/cuda_emulation/on_gpus.h"
#include "tests/gpu/spin.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class GpuFailures : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TANDEM_CUDA_WATCHDOG_S", "3", 1);
    try {
      open_gpus(1);
    } catch (const UnavailableError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override { unsetenv("TANDEM_CUDA_WATCHDOG_S"); }

  static std::string failure_of(int devices, const Program& program) {
    try {
      run_on_gpus(devices, program);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(GpuFailures, ABadLabel) {
  const auto program = [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor loss = gpu.allocate(DType::f32, {1}), logits = gpu.allocate(DType::f32, {4, 3});
    const Tensor labels = gpu.allocate(DType::i32, {4});
    gpu.compute_stream().launch(op::fill(logits, 0));
    gpu.compute_stream().launch(op::fill(labels, 3));
    gpu.compute_stream().launch(
        op::softmax_cross_entropy({.loss = loss, .gradient = {}, .correct = {}, .logits = logits, .labels = labels}));
    gpu.synchronize();
  };
  EXPECT_THAT(failure_of(1, program), HasSubstr("has label 3, must be from 0 to 2"));
}

TEST_F(GpuFailures, MoreMemoryThanThereIs) {
  const auto program = [](Worker& worker) { worker.devices()[0]->allocate(DType::u8, {std::int64_t{1} << 42}); };
  EXPECT_THAT(failure_of(1, program), HasSubstr("no memory for a tensor [4398046511104] of u8"));
  EXPECT_EQ(failure_of(1, [](Worker& worker) { worker.devices()[0]->allocate(DType::u8, {1 << 20}); }), "")
      << "the GPU is well";
}

// The process of this test must end, too, although nobody ends the kernel.
TEST_F(GpuFailures, AKernelThatNeverEnds) {
  const auto program = [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    void* stop = nullptr;
    ASSERT_EQ(cudaHostAlloc(&stop, sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped), cudaSuccess);
    *static_cast<int*>(stop) = 0;
    cudaStream_t stream = static_cast<cuda::CudaStream&>(gpu.compute_stream()).gpu_stream();
    gpu.compute_stream().launch(
        op::host_function("spin", {}, [=] { launch_spin(stream, static_cast<const int*>(stop)); }));
    gpu.synchronize();
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(failure_of(1, program), HasSubstr("the watchdog's timeout"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(GpuFailures, ARankThatNeverComes) {
  EngineOptions options;
  options.workers = {{.device_type = DeviceType::gpu, .device_count = 1},
                     {.task = 1, .device_type = DeviceType::gpu, .device_count = 1}};
  const auto program = [](Worker& worker) {
    const std::vector<DeviceId> ids{{"worker", 0, DeviceType::gpu, 0}, {"worker", 1, DeviceType::gpu, 0}};
    Communicator& communicator = worker.communicator(ids);
    communicator.set_timeout(1);
    if (worker.index() == 1) return;
    communicator.all_reduce(filled(worker, 64, 1), Reduction::sum, compute_streams(worker));
    worker.devices()[0]->synchronize();
  };
  EXPECT_THROW(open_engine("cuda", std::move(options))->run(program), DeadlineExceededError);
}

}  // namespace
}  // namespace tandem
