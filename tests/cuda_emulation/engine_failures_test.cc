// What the cuda engine makes of every failure of CUDA, cuBLAS and NCCL: an error that names the call, and an end.
#include <cublas_v2.h>

#include <chrono>
#include <thread>

#include "engine/cuda/kernels/launch_turn.h"
#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// On two GPUs, with a watchdog of 1 s.
class EngineFailures : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TANDEM_CUDA_WATCHDOG_S", "1", 1);
    emulation::start({.gpus = 2, .memory_bytes = 1 << 20});
  }
  void TearDown() override {
    emulation::start(emulation::machine_of_environment());
    const cuda::LaunchTurn aborts_are_over;
    unsetenv("TANDEM_CUDA_WATCHDOG_S");
  }
};

// What is given back is freed in a stream's time.
void expect_nothing_in_use() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (const int gpu : {0, 1}) {
    while (emulation::bytes_in_use(gpu) > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(emulation::bytes_in_use(gpu), 0U) << "GPU " << gpu;
  }
}

// A little of everything, ending in a collective.
void use_everything(Worker& worker) {
  const std::vector<Tensor> sums = filled(worker, 64, 1);
  std::vector<Tensor> kept;
  for (Device* device : worker.devices()) {
    const Tensor a = device->allocate(DType::f32, {8, 8}), c = device->allocate(DType::f32, {8, 8});
    device->compute_stream().launch(op::fill(a, 1));
    device->compute_stream().launch(op::gemm(c, a, a));
    const Tensor here = worker.cpu().allocate(DType::f32, {8, 8});
    device->compute_stream().copy(here, c);
    worker.cpu().compute_stream().wait(device->compute_stream().record());
    kept.push_back(here);
  }
  const Tensor there = worker.devices()[0]->allocate(DType::f32, {64});
  Stream& first = worker.devices()[0]->compute_stream();
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  worker.devices()[1]->compute_stream().launch(
      op::host_function("pause", {}, pause));  // else nothing may be waited for
  first.wait(worker.devices()[1]->compute_stream().record());
  first.copy(there, sums[1]);
  worker.communicator(ids_of(worker)).all_reduce(sums, Reduction::sum, compute_streams(worker));
  for (Device* device : worker.devices()) device->synchronize();
}

// How a run of it ends: the message of its RunError, "" where it ends well.
std::string failure_of(const Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  try {
    run_on_gpus(2, program);
  } catch (const RunError& error) {
    text = error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "it must end";
  return text;
}

TEST_F(EngineFailures, NoneWhenNothingFails) {
  EXPECT_EQ(failure_of(use_everything), "");
}

struct Failure {
  std::string call;
  int error;
  std::string text;     // what the message must contain
  std::string named{};  // under which name the message has the call; as `call` where empty
  int after = 0;        // calls that go well
  bool peers_reach = true;
};

std::ostream& operator<<(std::ostream& out, const Failure& failure) {
  return out << failure.call;
}

class EachCall : public EngineFailures, public testing::WithParamInterface<Failure> {};

TEST_P(EachCall, EndsTheRunWithItsNameAndReason) {
  const Failure& failure = GetParam();
  emulation::start({.gpus = 2, .peers_reach = failure.peers_reach, .memory_bytes = 1 << 20});
  emulation::fail_call(failure.call, failure.error, failure.after);
  EXPECT_THAT(failure_of(use_everything),
              AllOf(HasSubstr(failure.named.empty() ? failure.call : failure.named), HasSubstr(failure.text)));
  EXPECT_EQ(failure_of(use_everything), "") << "the next run is well again";
}

const std::vector<Failure> kFailures{
    {"cudaStreamCreateWithPriority", cudaErrorMemoryAllocation, "out of memory (cudaErrorMemoryAllocation)"},
    {"cudaDeviceGetDefaultMemPool", cudaErrorNotSupported, "(cudaErrorNotSupported)"},
    {"cudaMemPoolSetAttribute", cudaErrorNotSupported, "(cudaErrorNotSupported)"},
    {"cudaMemPoolSetAccess", cudaErrorInvalidDevice, "(cudaErrorInvalidDevice)"},
    {"cudaEventCreateWithFlags", cudaErrorMemoryAllocation, "(cudaErrorMemoryAllocation)"},
    {"cudaEventRecord", cudaErrorLaunchFailure, "unspecified launch failure (cudaErrorLaunchFailure)", "", 20},
    {"cudaHostAlloc", cudaErrorMemoryAllocation, "(cudaErrorMemoryAllocation)"},
    {"cudaStreamWaitEvent", cudaErrorInvalidResourceHandle, "(cudaErrorInvalidResourceHandle)"},
    {"cudaMemcpyAsync", cudaErrorIllegalAddress,
     "): an illegal memory access was encountered (cudaErrorIllegalAddress)"},
    {"cudaMemcpyPeerAsync", cudaErrorInvalidValue, "(GPU 0): invalid argument (cudaErrorInvalidValue)", "", 0, false},
    {"cudaLaunchKernel", cudaErrorLaunchFailure, "(cudaErrorLaunchFailure)", "op 'fill' on"},
    {"cudaSetDevice", cudaErrorInvalidDevice, "invalid device ordinal (cudaErrorInvalidDevice)"},
    {"cublasCreate", CUBLAS_STATUS_ALLOC_FAILED, "(CUBLAS_STATUS_ALLOC_FAILED)"},
    {"cublasSetStream", CUBLAS_STATUS_NOT_INITIALIZED, "(CUBLAS_STATUS_NOT_INITIALIZED)"},
    {"cublasGemmEx", CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"},
    {"ncclGetUniqueId", ncclSystemError, "unhandled system error"},
    {"ncclCommInitRank", ncclSystemError, "rank 1 of 2, /job:worker/replica:0/task:0/device:GPU:1: unhandled", "", 1},
    {"ncclGroupStart", ncclInternalError, "(ncclInternalError)"},
    {"ncclAllReduce", ncclSystemError, "/job:worker/replica:0/task:0/device:GPU:1: unhandled system error", "", 3},
    {"ncclGroupEnd", ncclUnhandledCudaError, "all_reduce #0", "", 3},
    // A part of the ranks is launched, and would wait for the others for ever.
    {"ncclLaunchKernel", ncclUnhandledCudaError, "all_reduce #0", "ncclGroupEnd", 5}};

std::string name_of_call(const testing::TestParamInfo<Failure>& info) {
  return info.param.call;
}
INSTANTIATE_TEST_SUITE_P(Calls, EachCall, testing::ValuesIn(kFailures), name_of_call);

// Calls `call` on the stream's thread, when the work before it is done.
void launch_call(Device& device, std::function<void()> call) {
  device.compute_stream().launch(op::host_function("call", {}, std::move(call)));
}

TEST_F(EngineFailures, AnErrorOfAKernelShowsAtTheNextWait) {
  const auto program = [](Worker& worker) {
    Device& device = *worker.devices()[1];
    launch_call(device, [] { emulation::break_gpu(1, cudaErrorIllegalAddress); });
    device.synchronize();
  };
  EXPECT_THAT(failure_of(program), HasSubstr("an illegal memory access was encountered (cudaErrorIllegalAddress)"));
}

TEST_F(EngineFailures, ACollectiveEndsWhenTheGpuOfAnotherRankHasFailed) {
  const auto program = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    for (Device* device : worker.devices()) device->synchronize();
    launch_call(*worker.devices()[1], [] { emulation::hang_gpu(1); });
    worker.communicator(ids_of(worker)).all_reduce(tensors, Reduction::sum, compute_streams(worker));
    launch_call(*worker.devices()[0], [] {});  // returns when the collective is over
    launch_call(*worker.devices()[1], [] {});
    emulation::break_gpu(1, cudaErrorLaunchFailure);
    emulation::release_gpus();
    for (Device* device : worker.devices()) device->synchronize();
  };
  EXPECT_NE(failure_of(program), "");
}

TEST_F(EngineFailures, AGpuThatHangsIsNamedByTheWatchdog) {
  const auto program = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    for (Device* device : worker.devices()) device->synchronize();
    emulation::hang_gpu(1);
    worker.devices()[1]->compute_stream().launch(op::fill(tensors[1], 2));
    worker.devices()[1]->synchronize();
  };
  EXPECT_THAT(failure_of(program), AllOf(HasSubstr("/job:worker/replica:0/task:0/device:GPU:1"),
                                         HasSubstr("the GPU has not reached a point in 1 s, the watchdog's timeout")));
  emulation::release_gpus();
  EXPECT_EQ(failure_of(use_everything), "") << "the next run is well again";
}

TEST_F(EngineFailures, AGpuThatHangsEndsAllocationsAndNewStreams) {
  const auto allocate = [](Worker& worker) {
    emulation::hang_gpu(1);
    worker.devices()[1]->allocate(DType::f32, {64});
  };
  EXPECT_THAT(failure_of(allocate), AllOf(HasSubstr("GPU 1"), HasSubstr("1 s, the watchdog's timeout")));
  emulation::release_gpus();
  const auto open_stream = [](Worker& worker) {
    emulation::hang_gpu(1);
    worker.devices()[1]->stream(3);
  };
  EXPECT_THAT(failure_of(open_stream), AllOf(HasSubstr("stream 3 of /job:worker/replica:0/task:0/device:GPU:1"),
                                             HasSubstr("1 s, the watchdog's timeout")));
}

TEST_F(EngineFailures, WhatNcclFindsByItselfEndsTheWait) {
  const auto program = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    for (Device* device : worker.devices()) device->synchronize();
    Communicator& communicator = worker.communicator(ids_of(worker));
    emulation::hang_gpu(1);
    communicator.all_reduce(tensors, Reduction::sum, compute_streams(worker));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it is launched by now
    emulation::fail_communicators(ncclRemoteError);
    worker.devices()[0]->synchronize();
  };
  EXPECT_THAT(failure_of(program), AllOf(HasSubstr("NCCL on rank 0, /job:worker/replica:0/task:0/device:GPU:0"),
                                         HasSubstr("remote process exited or there was a network error")));
}

TEST_F(EngineFailures, ACollectiveOnAHangingGpuMissesItsDeadline) {
  const auto program = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    for (Device* device : worker.devices()) device->synchronize();
    Communicator& communicator = worker.communicator(ids_of(worker));
    communicator.set_timeout(0.3);
    std::vector<Stream*> streams = compute_streams(worker);
    worker.devices()[1]->compute_stream().synchronize();
    communicator.all_reduce(tensors, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
    launch_call(*worker.devices()[1], [] { emulation::hang_gpu(1); });
    communicator.all_reduce(tensors, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
  };
  EXPECT_THROW(run_on_gpus(2, program), DeadlineExceededError);
}

TEST_F(EngineFailures, MemoryThatDoesNotSufficeIsNamed) {
  const auto program = [](Worker& worker) {
    const Tensor most = worker.devices()[1]->allocate(DType::u8, {700'000});
    worker.devices()[1]->allocate(DType::u8, {400'000});
  };
  EXPECT_THAT(failure_of(program),
              HasSubstr("/job:worker/replica:0/task:0/device:GPU:1: no memory for a tensor [400000] of u8, 400.0 kB: "
                        "700.0 kB in use on this device, of what GPU 1 has"));
  expect_nothing_in_use();
}

// Three logical devices on two GPUs: what is on the other one is staged.
TEST_F(EngineFailures, ACollectiveThatFailsKeepsNoMemory) {
  const auto program = [](Worker& worker) {
    worker.communicator(ids_of(worker)).all_reduce(filled(worker, 999, 1), Reduction::sum, compute_streams(worker));
    for (Device* device : worker.devices()) device->synchronize();
  };
  EXPECT_NO_THROW(run_on_gpus(3, program));
  emulation::fail_call("cudaMemcpyAsync", cudaErrorInvalidValue, 1);
  EXPECT_THROW(run_on_gpus(3, program), RunError);
  expect_nothing_in_use();
}

TEST_F(EngineFailures, AnExceptionWhileTheGpuWorksEndsTheRunAndNotTheNext) {
  const auto engine = open_gpus(2);
  const auto fail = [](Worker& worker) {
    for (int i = 0; i < 100; ++i) filled(worker, 1000, 1);
    throw std::runtime_error("the program gives up");
  };
  EXPECT_THAT([&] { engine->run(fail); }, testing::ThrowsMessage<std::runtime_error>("the program gives up"));
  EXPECT_NO_THROW(engine->run(use_everything));
}

TEST_F(EngineFailures, AWatchdogWithoutANumberIsRefused) {
  setenv("TANDEM_CUDA_WATCHDOG_S", "soon", 1);
  EXPECT_THAT([] { run_on_gpus(1, [](Worker&) {}); },
              testing::ThrowsMessage<Error>(
                  HasSubstr("TANDEM_CUDA_WATCHDOG_S is 'soon', must be a number of seconds greater than 0")));
}

TEST_F(EngineFailures, OfKernelsSayWhatTheCpuEngineSays) {
  const auto failure_of_op = [](const std::function<Op(Device&)>& make) {
    return failure_of([&](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      gpu.compute_stream().launch(make(gpu));
      gpu.synchronize();
    });
  };
  const auto filled_with = [](Device& gpu, DType dtype, Shape shape, double value) {
    Tensor tensor = gpu.allocate(dtype, shape);
    gpu.compute_stream().launch(op::fill(tensor, value));
    return tensor;
  };
  EXPECT_THAT(failure_of_op([&](Device& gpu) {
                const Tensor zero = filled_with(gpu, DType::i32, {5}, 0);
                return op::elementwise(kernel::Binary::divide, zero, zero, zero);
              }),
              testing::HasSubstr("an integer is divided by zero"));
  EXPECT_THAT(failure_of_op([&](Device& gpu) {
                return op::softmax_cross_entropy({.loss = filled_with(gpu, DType::f32, {1}, 0),
                                                  .gradient = {},
                                                  .correct = {},
                                                  .logits = filled_with(gpu, DType::f32, {4, 3}, 0),
                                                  .labels = filled_with(gpu, DType::i32, {4}, 3)});
              }),
              testing::HasSubstr("has label 3, must be from 0 to 2"));
  for (const std::int64_t rows : {1, 300}) {  // 300 are sorted
    EXPECT_THAT(failure_of_op([&](Device& gpu) {
                  return op::scatter_rows(kernel::Scatter::add, filled_with(gpu, DType::f32, {4, 3}, 0),
                                          filled_with(gpu, DType::f32, {rows, 3}, 0),
                                          filled_with(gpu, DType::i64, {rows}, -1));
                }),
                testing::HasSubstr("scatter_rows to row -1 of 4"));
  }
}

}  // namespace
}  // namespace tandem
