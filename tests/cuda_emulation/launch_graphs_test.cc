// Ops that come again go as one launch, and do what they did one by one.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kOps = 10, kSteps = 3;

class LaunchGraphs : public testing::Test {
 protected:
  void TearDown() override { emulation::start(emulation::machine_of_environment()); }
};

Timeline run(bool graphs, const Program& program) {
  EngineOptions options;
  options.workers.front() = {.device_type = DeviceType::gpu, .device_count = 1};
  options.graphs = graphs;
  return open_engine("cuda", std::move(options))->run(program);
}

// Each step adds 1 for each of its ops; `value` of the step is written first, where there is one.
Program steps_of(std::vector<float>& sums, double (*value)(int step) = nullptr) {
  return [&sums, value](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    const Tensor sum = filled(worker, 5, 0)[0], one = filled(worker, 5, 1)[0], scratch = filled(worker, 5, 0)[0];
    const Tensor here = worker.cpu().allocate(DType::f32, {5});
    stream.synchronize();
    for (int step = 0; step < kSteps; ++step) {
      worker.begin_step(step);
      if (value != nullptr) stream.launch(op::fill(scratch, value(step)));
      for (int i = 0; i < kOps; ++i) stream.launch(op::elementwise(kernel::Binary::add, sum, sum, one));
      worker.end_step();
      stream.copy(here, sum);
      stream.synchronize();
      sums.push_back(here.values<float>()[4]);
    }
  };
}

TEST_F(LaunchGraphs, LeaveOneRecordAndTheSameValues) {
  std::vector<float> sums;
  const Timeline timeline = run(true, steps_of(sums));
  EXPECT_THAT(sums, testing::ElementsAre(10, 20, 30));
  EXPECT_EQ(timeline.settings.at("graphs"), "on");
  std::vector<const Record*> graphs;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::op && record.step >= 0) graphs.push_back(&record);
  }
  ASSERT_EQ(graphs.size(), static_cast<std::size_t>(kSteps));
  for (const Record* record : graphs) {
    EXPECT_EQ(record->name, "graph of 10 ops");
    EXPECT_EQ(record->bytes, kOps * 5 * 4 * 3.0) << "two operands read, one written";
  }
}

TEST_F(LaunchGraphs, LaunchWhatComesAgainAndNothingElse) {
  std::vector<float> sums;
  emulation::fail_call("cudaGraphLaunch", cudaErrorLaunchFailure, 1);
  EXPECT_THAT([&] { run(true, steps_of(sums)); }, ThrowsMessage<RunError>(HasSubstr("cudaGraphLaunch")));
  EXPECT_THAT(sums, testing::ElementsAre(10, 20)) << "the second step is the first graph, the third is the second";
  sums.clear();
  emulation::fail_call("cudaGraphLaunch", cudaErrorLaunchFailure);
  run(false, steps_of(sums));
  EXPECT_THAT(sums, testing::ElementsAre(10, 20, 30)) << "nothing is a graph that is not asked for";
}

TEST_F(LaunchGraphs, OfOtherNumbersAreOthers) {
  std::vector<float> sums;
  emulation::fail_call("cudaGraphLaunch", cudaErrorLaunchFailure);
  run(true, steps_of(sums, [](int step) { return 1.0 * step; }));
  EXPECT_THAT(sums, testing::ElementsAre(10, 20, 30)) << "no step is like another";
  EXPECT_THAT([&] { run(true, steps_of(sums, [](int step) { return 1.0 * (step % 2); })); },
              ThrowsMessage<RunError>(HasSubstr("op 'graph of 11 ops'")))
      << "the third step is like the first";
}

// The operands of each step are those of `places` places by turns, as when memory comes back late.
Program steps_at_places(int steps, int places, std::vector<float>& sums) {
  return [=, &sums](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    std::vector<Tensor> at;
    for (int i = 0; i < places; ++i) at.push_back(filled(worker, 5, 0)[0]);
    const Tensor one = filled(worker, 5, 1)[0], here = worker.cpu().allocate(DType::f32, {5});
    stream.synchronize();
    for (int step = 0; step < steps; ++step) {
      const Tensor& sum = at[static_cast<std::size_t>(step % places)];
      for (int i = 0; i < kOps; ++i) stream.launch(op::elementwise(kernel::Binary::add, sum, sum, one));
      stream.copy(here, sum);
      stream.synchronize();
      sums.push_back(here.values<float>()[4]);
    }
  };
}

TEST_F(LaunchGraphs, OfOtherAddressesAreUpdated) {
  std::vector<float> sums;
  const Timeline timeline = run(true, steps_at_places(12, 6, sums));
  EXPECT_THAT(sums, testing::ElementsAre(10, 10, 10, 10, 10, 10, 20, 20, 20, 20, 20, 20));
  EXPECT_EQ(timeline.settings.at("graph_launches"), "11 of 13 series launched as graphs; 4 captured, 7 updated")
      << "the first is the filling of the operands";
}

TEST_F(LaunchGraphs, OfAFewPlacesAreCapturedOnceEach) {
  std::vector<float> sums;
  const Timeline timeline = run(true, steps_at_places(12, 3, sums));
  EXPECT_EQ(timeline.settings.at("graph_launches"), "11 of 13 series launched as graphs; 3 captured, 0 updated");
  EXPECT_EQ(sums.back(), 40);
}

// Nobody waits for the ops, and more are to come: the GPU begins all the same.
TEST_F(LaunchGraphs, BeginBeforeTheLastOpIsIssued) {
  run(true, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    const Tensor sum = filled(worker, 5, 0)[0], one = filled(worker, 5, 1)[0];
    stream.synchronize();
    for (int i = 0; i < 100; ++i) stream.launch(op::elementwise(kernel::Binary::add, sum, sum, one));
    const auto begin = std::chrono::steady_clock::now();
    const auto has_begun = [&] { return *static_cast<const volatile float*>(sum.data()) >= 64; };
    while (!has_begun() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(has_begun());
    for (int i = 0; i < 100; ++i) stream.launch(op::elementwise(kernel::Binary::add, sum, sum, one));
    const Tensor here = worker.cpu().allocate(DType::f32, {5});
    stream.copy(here, sum);
    stream.synchronize();
    EXPECT_EQ(here.values<float>()[4], 200);
  });
}

TEST_F(LaunchGraphs, AFailureWhileOneIsCapturedIsTold) {
  std::vector<float> sums;
  emulation::fail_call("cudaGraphInstantiate", cudaErrorMemoryAllocation);
  EXPECT_THAT([&] { run(true, steps_of(sums)); }, ThrowsMessage<RunError>(HasSubstr("cudaGraphInstantiate")));
  EXPECT_THAT(sums, testing::ElementsAre(10));
  sums.clear();
  run(true, steps_of(sums));
  EXPECT_THAT(sums, testing::ElementsAre(10, 20, 30)) << "the next run is well again";
}

}  // namespace
}  // namespace tandem
