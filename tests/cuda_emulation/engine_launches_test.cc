// What GPUs must have together or in one order: launches of NCCL's groups beside calls that wait for a GPU, several
// communicators on one GPU, connecting, and what becomes of a thread's state.
#include <sys/prctl.h>

#include <chrono>
#include <optional>
#include <thread>

#include "engine/cuda/collectives/nccl_communicators.h"
#include "engine/cuda/device/gpu.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "tests/cuda_emulation/gpus.h"
#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class EngineLaunches : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TANDEM_CUDA_WATCHDOG_S", "2", 1);
    emulation::start({.gpus = 2, .delay_seed = 11});
  }
  void TearDown() override {
    emulation::start(emulation::machine_of_environment());
    const cuda::LaunchTurn aborts_are_over;
    unsetenv("TANDEM_CUDA_WATCHDOG_S");
  }
};
using EngineLaunchesDeathTest = EngineLaunches;

TEST_F(EngineLaunchesDeathTest, TheEmulationFindsACallThatWaitsBetweenTwoLaunches) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        const emulation::Launching launching;
        void* block = nullptr;
        cudaHostAlloc(&block, 8, cudaHostAllocPortable);
      },
      "cudaHostAlloc may wait for a GPU between two launches of an NCCL group");
}

// The other worker makes streams and communicators, allocates, and multiplies matrices of ever new shapes, twice each,
// which makes graphs where there are some.
void launch_beside_groups(bool graphs) {
  EngineOptions options;
  options.workers = {{.device_type = DeviceType::gpu, .device_count = 2},
                     {.task = 1, .device_type = DeviceType::gpu, .device_count = 2}};
  options.graphs = graphs;
  const auto engine = open_engine("cuda", std::move(options));
  engine->run([](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    for (int i = 0; i < 30; ++i) {
      if (worker.index() == 0) {
        worker.communicator(ids_of(worker)).all_reduce(tensors, Reduction::sum, compute_streams(worker));
        continue;
      }
      Device& device = *worker.devices()[static_cast<std::size_t>(i % 2)];
      const Tensor a = device.allocate(DType::f32, {1 + i, 3}), c = device.allocate(DType::f32, {1 + i, 1 + i});
      for (int time = 0; time < 2; ++time) {
        device.compute_stream().launch(op::fill(a, 1));
        device.compute_stream().launch(op::gemm(c, a, a, false, true));
        device.compute_stream().record();
      }
      device.stream(3 + i).launch(op::fill(c, 2));
      const Tensor pinned = worker.cpu().allocate(DType::f32, {1000 * (1 + i)});
      device.synchronize();
      if (i == 10) worker.communicator(ids_of(worker)).all_reduce(tensors, Reduction::sum, compute_streams(worker));
    }
  });
}

TEST_F(EngineLaunches, NothingThatWaitsForAGpuComesBetweenTwoLaunchesOfAGroup) {
  for (const bool graphs : {false, true}) launch_beside_groups(graphs);
}

// Tasks mark an idle stream themselves, and leave a busy one to its thread.
void mark_beside_launches(bool graphs) {
  constexpr int kTasks = 4, kRounds = 50;
  EngineOptions options;
  options.workers.front() = {.device_type = DeviceType::gpu, .device_count = 1};
  options.graphs = graphs;
  open_engine("cuda", std::move(options))->run([](Worker& worker) {
    Device& device = *worker.devices()[0];
    Stream& stream = device.compute_stream();
    worker.tasks().run_concurrently(kTasks, [&](int task) {
      const Tensor sum = device.allocate(DType::f32, {1}), one = device.allocate(DType::f32, {1});
      const Tensor here = worker.cpu().allocate(DType::f32, {1});
      stream.launch(op::fill(sum, task));
      stream.launch(op::fill(one, 1));
      for (int round = 1; round <= kRounds; ++round) {
        stream.launch(op::elementwise(kernel::Binary::add, sum, sum, one));
        if (round % 7 == 0) stream.synchronize();
        device.stream(1).wait(stream.record());
        stream.record().synchronize();
        device.stream(1).copy(here, sum);
        device.stream(1).synchronize();
        EXPECT_EQ(here.values<float>()[0], static_cast<float>(task + round));
      }
    });
  });
}

TEST_F(EngineLaunches, AStreamIsMarkedByAnyTaskInTheOrderOfItsWork) {
  for (const bool graphs : {false, true}) mark_beside_launches(graphs);
}

// Without one order, each GPU may begin with the kernel of another communicator, and has no room for both.
TEST_F(EngineLaunches, SeveralCommunicatorsOnTheSameGpusTakeTurns) {
  const auto run = [](Worker& worker) {
    const std::vector<DeviceId> ids = ids_of(worker);
    const std::vector<DeviceId> turned{ids[1], ids[0]};
    std::vector<Tensor> tensors = filled(worker, 64, 1), others = filled(worker, 64, 1);
    std::vector<Stream*> second{&worker.devices()[1]->stream(1), &worker.devices()[0]->stream(1)};
    std::swap(others[0], others[1]);
    for (Device* device : worker.devices()) device->synchronize();
    for (int i = 0; i < 40; ++i) {
      worker.communicator(ids).all_reduce(tensors, Reduction::maximum, compute_streams(worker));
      worker.communicator(turned).all_reduce(others, Reduction::maximum, second);
    }
    for (Device* device : worker.devices()) device->synchronize();
  };
  EXPECT_NO_THROW(run_on_gpus(2, run));
}

TEST_F(EngineLaunches, ConnectingDoesNotCountAgainstATimeout) {
  emulation::start({.gpus = 2, .connect_ms = 400});
  const auto run = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    Communicator& communicator = worker.communicator(ids_of(worker));
    communicator.set_timeout(0.2);
    communicator.all_reduce(tensors, Reduction::sum, compute_streams(worker));
    communicator.all_to_all(filled(worker, 64, 0), tensors, compute_streams(worker));
    for (Device* device : worker.devices()) device->synchronize();
  };
  EXPECT_NO_THROW(run_on_gpus(2, run));
}

TEST_F(EngineLaunches, CommunicationGoesFirst) {
  int least = 0, greatest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  cuda::GpuHandles handles(0, std::make_shared<cuda::Hangs>(1));
  const auto priority_of = [&](cuda::StreamUse use) {
    cudaStream_t stream = handles.take_stream(use);
    int priority = 1;
    EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
    handles.give_back(stream, use);
    return priority;
  };
  EXPECT_EQ(priority_of(cuda::StreamUse::communication), greatest);
  EXPECT_EQ(priority_of(cuda::StreamUse::computation), least);
}

TEST_F(EngineLaunches, AFailedGroupKeepsTheCurrentGpu) {
  cudaSetDevice(0);
  std::vector<cuda::NcclMember> members{{.rank = 0, .gpu = 0, .name = "a"}, {.rank = 1, .gpu = 1, .name = "b"}};
  cuda::NcclCommunicators communicators(cuda::NcclId::make(), 2, members, 2);
  const auto fail = [&] {
    communicators.in_group(
        "a group", [](const cuda::NcclMember&) { return nullptr; },
        [](const cuda::NcclMember& member, ncclComm_t) {
          cudaSetDevice(member.gpu);
          if (member.rank == 1) throw RunError("it fails");
        });
  };
  EXPECT_THAT(fail, ThrowsMessage<RunError>("it fails"));
  int gpu = -1;
  ASSERT_EQ(cudaGetDevice(&gpu), cudaSuccess);
  EXPECT_EQ(gpu, 0);
}

TEST_F(EngineLaunches, WhatIsNotReadyIsNoErrorOfTheNextLaunch) {
  cudaStream_t stream{};
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  cudaEvent_t event{};
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  emulation::hang_gpu(0);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady) << "as the runtime does";
  EXPECT_EQ(cuda::query(event), cudaErrorNotReady);
  EXPECT_EQ(cuda::query(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  emulation::release_gpus();
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(EngineLaunches, AGpuThatHasFailedIsNotOutOfMemory) {
  const auto run = [](Worker& worker) {
    emulation::break_gpu(1, cudaErrorIllegalAddress);
    worker.devices()[1]->allocate(DType::f32, {1 << 10});
  };
  EXPECT_THAT([&] { run_on_gpus(2, run); }, ThrowsMessage<RunError>(HasSubstr("cudaErrorIllegalAddress")));
}

TEST_F(EngineLaunches, PollingThreadsWakeUpOnTime) {
  std::thread([] {
    const cuda::PollPause pause;
    while (!pause.is_over(300e-6)) pause();
    pause();
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 1);
  }).join();
}

TEST_F(EngineLaunches, NeighboursShareTheEventBetweenThem) {
  emulation::start({.gpus = 1});
  const Timeline timeline = run_on_gpus(1, [](Worker& worker) {
    const Tensor tensor = filled(worker, 64, 1)[0];
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.synchronize();
    emulation::hang_gpu(0);
    for (int i = 0; i < 3; ++i) stream.launch(op::fill(tensor, i));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // all are issued
    emulation::release_gpus();
    stream.synchronize();
  });
  std::vector<Record> fills;
  for (const Record& record : timeline.records) {
    if (record.name == "fill") fills.push_back(record);
  }
  ASSERT_EQ(fills.size(), 4U);
  EXPECT_EQ(fills[2].start_ns, fills[1].end_ns);
  EXPECT_EQ(fills[3].start_ns, fills[2].end_ns);
  EXPECT_LT(fills[3].start_ns, fills[3].end_ns);
}

// Two logical devices on one GPU: what the first has freed comes back although it does nothing more.
TEST_F(EngineLaunches, MemoryOfAnotherLogicalDeviceComesBackWhenItIsNeeded) {
  emulation::start({.gpus = 1, .memory_bytes = 1 << 20});
  const auto run = [](Worker& worker) {
    Device &first = *worker.devices()[0], &second = *worker.devices()[1];
    {
      const Tensor tensor = first.allocate(DType::u8, {700'000});
      first.compute_stream().launch(op::fill(tensor, 1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // issued, and kept alive by the stream
    second.compute_stream().launch(op::fill(second.allocate(DType::u8, {700'000}), 2));
    second.synchronize();
  };
  EXPECT_NO_THROW(run_on_gpus(2, run));
}

// A launch that does not end keeps neither the stream's thread nor the run, long before the watchdog: whichever rank is
// the last to arrive, whose thread launches for all.
TEST_F(EngineLaunches, ALaunchThatDoesNotEndIsAbortedWhenTheRunEnds) {
  setenv("TANDEM_CUDA_WATCHDOG_S", "60", 1);
  for (const std::size_t last : {0, 1}) {
    emulation::start({.gpus = 2});
    const auto begin = std::chrono::steady_clock::now();
    const auto run = [&](Worker& worker) {
      const std::vector<Tensor> tensors = filled(worker, 64, 1);
      Communicator& communicator = worker.communicator(ids_of(worker));
      emulation::hold_launches(true);
      worker.devices()[last]->compute_stream().launch(
          op::host_function("late", {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }));
      communicator.all_reduce(tensors, Reduction::sum, compute_streams(worker));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      throw Error("the program gives up");
    };
    EXPECT_THAT([&] { run_on_gpus(2, run); }, ThrowsMessage<Error>("the program gives up"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "rank " << last << " is the last";
    const cuda::LaunchTurn aborts_are_over;
  }
}

TEST_F(EngineLaunches, AMessageWhoseLaunchDoesNotEndIsAbortedWhenTheRunEnds) {
  setenv("TANDEM_CUDA_WATCHDOG_S", "60", 1);
  emulation::start({.gpus = 2});
  const auto begin = std::chrono::steady_clock::now();
  const auto run = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    Communicator& communicator = worker.communicator(ids_of(worker));
    emulation::hold_launches(true);
    communicator.send(tensors[0], 1, worker.devices()[0]->compute_stream());
    communicator.receive(tensors[1], 0, worker.devices()[1]->compute_stream());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    throw Error("the program gives up");
  };
  EXPECT_THAT([&] { run_on_gpus(2, run); }, ThrowsMessage<Error>("the program gives up"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// Nothing at the end may wait for the GPU: neither freeing handles and pinned memory, nor the communicators.
TEST_F(EngineLaunches, AGpuThatHangsForEverDoesNotKeepTheRunOrTheNextOne) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hang = [](Worker& worker) {
    const std::vector<Tensor> tensors = filled(worker, 64, 1);
    const Tensor pinned = worker.cpu().allocate(DType::f32, {64});
    Device& device = *worker.devices()[1];
    const Tensor a = device.allocate(DType::f32, {8, 8}), c = device.allocate(DType::f32, {8, 8});
    device.compute_stream().launch(op::fill(a, 1));
    device.compute_stream().launch(op::gemm(c, a, a));
    Communicator& communicator = worker.communicator(ids_of(worker));
    for (Device* each : worker.devices()) each->synchronize();
    emulation::hang_gpu(1);
    communicator.all_reduce(tensors, Reduction::sum, compute_streams(worker));
    device.synchronize();
  };
  EXPECT_THROW(run_on_gpus(2, hang), RunError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_THROW(run_on_gpus(2, hang), RunError) << "it still hangs";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  emulation::release_gpus();
}

}  // namespace
}  // namespace tandem
