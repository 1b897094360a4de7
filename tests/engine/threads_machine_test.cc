// Runs on devices that a machine brings: how an executor of collectives is called, and what its errors do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_memory.h"
#include "engine/threads/run.h"

namespace tandem::threads {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Sums in rank order, where all tensors are in host memory after all.
class Summing final : public CollectiveExecutor {
 public:
  void execute(const CollectiveCall& call) override {
    ++calls;
    for (int rank = 0; rank < call.ranks(); ++rank) EXPECT_EQ(&call.stream(rank).device(), &call.device(rank));
    if (fails) throw RunError("the link is down");
    std::vector<float> sums(static_cast<std::size_t>(call.spec().count));
    for (int rank = 0; rank < call.ranks(); ++rank) {
      const auto values = call.input(rank).values<float>();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
    for (int rank = 0; rank < call.ranks(); ++rank) {
      std::copy(sums.begin(), sums.end(), call.output(rank).values<float>().begin());
    }
  }
  void abort() override {}

  std::atomic<int> calls{0};
  bool fails = false;
};

class SummingMachine final : public Machine {
 public:
  std::unique_ptr<LocalDevice> make_device(RunContext& context, WorkerState& worker, DeviceId id, int index) override {
    return std::make_unique<cpu::CpuDevice>(context, worker, std::move(id), index);
  }
  std::shared_ptr<CollectiveExecutor> make_collective_executor(const std::vector<Device*>& /*devices*/) override {
    return executor;
  }
  const std::shared_ptr<Summing> executor = std::make_shared<Summing>();
};

// A worker with two devices of type GPU, each bringing its number plus one.
void run_all_reduce(SummingMachine& machine, std::int64_t count, std::vector<std::vector<float>>& results) {
  Capabilities capabilities;
  capabilities.engine = "test";
  EngineOptions options;
  options.workers = {{.device_type = DeviceType::gpu, .device_count = 2}};
  threads::Run run(capabilities, options, cpu::make_host_memory(1 << 20), machine);
  run.run([&](Worker& worker) {
    std::vector<DeviceId> ids;
    std::vector<Tensor> tensors;
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) {
      ids.push_back(device->id());
      tensors.push_back(device->allocate(DType::f32, {count}));
      streams.push_back(&device->compute_stream());
      streams.back()->launch(op::fill(tensors.back(), device->id().index + 1));
    }
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
    for (const Tensor& tensor : tensors) {
      results.emplace_back(tensor.values<float>().begin(), tensor.values<float>().end());
    }
  });
}

TEST(CpuMachine, GivesWorkersACpuBesideTheirDevices) {
  SummingMachine machine;
  Capabilities capabilities;
  capabilities.engine = "test";
  EngineOptions options;
  options.workers = {{.device_type = DeviceType::gpu, .device_count = 2}};
  threads::Run run(capabilities, options, cpu::make_host_memory(1 << 20), machine);
  const Timeline timeline = run.run([](Worker& worker) {
    EXPECT_EQ(worker.cpu().id().type, DeviceType::cpu);
    EXPECT_EQ(worker.devices().size(), 2U);
    EXPECT_EQ(worker.devices()[1]->id(), (DeviceId{"worker", 0, DeviceType::gpu, 1}));
  });
  EXPECT_EQ(timeline.devices.size(), 3U);
}

TEST(CpuMachine, APerformerIsCalledOnceACollective) {
  SummingMachine machine;
  std::vector<std::vector<float>> results;
  run_all_reduce(machine, 3, results);
  EXPECT_THAT(results, ElementsAre(ElementsAre(3, 3, 3), ElementsAre(3, 3, 3)));
  EXPECT_EQ(machine.executor->calls, 1);
  run_all_reduce(machine, 0, results);
  EXPECT_EQ(machine.executor->calls, 1) << "there is nothing to do";
}

TEST(CpuMachine, TheErrorOfAPerformerFailsTheRun) {
  SummingMachine machine;
  machine.executor->fails = true;
  std::vector<std::vector<float>> results;
  EXPECT_THAT([&] { run_all_reduce(machine, 3, results); }, ThrowsMessage<RunError>(HasSubstr("the link is down")));
}

}  // namespace
}  // namespace tandem::threads
