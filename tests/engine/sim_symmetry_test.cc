// Workers that represent others: the partition of flows and links, and what ends the attempt.
#include <fmt/format.h>

#include "engine/sim/symmetry/partition.h"
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

using sim::symmetry::Crossings;
using sim::symmetry::equitable_partition;
using sim::symmetry::Partition;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Crossings crossings_of(const std::vector<std::vector<std::uint32_t>>& flows) {
  Crossings crossings;
  for (const auto& links : flows) {
    crossings.links.insert(crossings.links.end(), links.begin(), links.end());
    crossings.close_flow();
  }
  return crossings;
}

TEST(EquitablePartition, TellsFlowsApartByTheLinksThatTheyShare) {
  // Two flows share link 0; one has link 1 to itself.
  const Partition partition = equitable_partition(crossings_of({{0}, {0}, {1}}), std::vector<std::uint32_t>{0, 0, 0},
                                                  std::vector<std::uint32_t>{0, 0});
  EXPECT_THAT(partition.flow_class, ElementsAre(0, 0, 1));
  EXPECT_THAT(partition.link_class, ElementsAre(0, 1));
}

TEST(EquitablePartition, ARingIsOneClassAndAChainIsManyByDistance) {
  const std::vector<std::uint32_t> equal(6, 0);
  const Partition ring =
      equitable_partition(crossings_of({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}}), equal, equal);
  EXPECT_THAT(ring.flow_class, ElementsAre(0, 0, 0, 0, 0, 0));
  const Partition chain = equitable_partition(crossings_of({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}),
                                              std::vector<std::uint32_t>(5, 0), equal);
  EXPECT_THAT(chain.flow_class, ElementsAre(0, 1, 2, 1, 0));
  EXPECT_THAT(chain.link_class, ElementsAre(0, 1, 2, 2, 1, 0));
}

TEST(EquitablePartition, KeepsColoursAndCountsCrossings) {
  const Partition coloured =
      equitable_partition(crossings_of({{0}, {1}}), std::vector<std::uint32_t>{7, 8}, std::vector<std::uint32_t>{0, 0});
  EXPECT_NE(coloured.flow_class[0], coloured.flow_class[1]);
  EXPECT_NE(coloured.link_class[0], coloured.link_class[1]);
  const Partition twice = equitable_partition(crossings_of({{0, 0}, {1}}), std::vector<std::uint32_t>{0, 0},
                                              std::vector<std::uint32_t>{0, 0});
  EXPECT_NE(twice.flow_class[0], twice.flow_class[1]);
}

constexpr int kWorkers = 6;

EngineOptions alike_workers(int workers = kWorkers) {
  EngineOptions options = gpu_workers(make_star({.workers = workers}), workers);
  options.alike.assign(static_cast<std::size_t>(workers), 0);
  return options;
}

// Runs a program as long as the engine asks for it. Counts how often a worker has begun it in the last run, and the
// runs.
Timeline run_to_the_end(const EngineOptions& options, const Program& program, int* begun = nullptr,
                        int* runs = nullptr) {
  const auto engine = open_sim_engine(options);
  for (;;) {
    if (runs != nullptr) ++*runs;
    if (begun != nullptr) *begun = 0;
    try {
      return engine->run([&](Worker& worker) {
        if (begun != nullptr) ++*begun;
        program(worker);
      });
    } catch (const RunAgain&) {
    }
  }
}

void all_reduce_once(Worker& worker, double flops = 1e9, int workers = kWorkers) {
  Device& gpu = *worker.devices()[0];
  const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {1'000'000})};
  const std::vector<Stream*> streams = {&gpu.compute_stream()};
  worker.begin_step(0);
  gpu.compute_stream().launch(cost_only(flops));
  worker.communicator(gpus_of(workers)).all_reduce(buffers, Reduction::sum, streams);
  worker.end_step();
}

TEST(SimSymmetry, TheFirstWorkerRunsForAllAndTheLastAsItsWitness) {
  int begun = 0;
  const Timeline some = run_to_the_end(
      alike_workers(), [](Worker& worker) { all_reduce_once(worker); }, &begun);
  EXPECT_EQ(begun, 2);
  ASSERT_EQ(some.classes.size(), 1U);
  EXPECT_EQ(some.classes[0].representative, 0);
  EXPECT_EQ(some.classes[0].workers, kWorkers);
  EXPECT_EQ(some.devices.size(), 2U * kWorkers);
  EngineOptions every = alike_workers();
  every.alike.clear();
  const Timeline all = run_to_the_end(every, [](Worker& worker) { all_reduce_once(worker); });
  for (const Record& record : some.records) EXPECT_EQ(record.worker, 0);
  EXPECT_EQ(some.records.back().end_ns, all.records.back().end_ns);
  EXPECT_EQ(some.records.size() * kWorkers, all.records.size());
}

TEST(SimSymmetry, AWitnessThatDoesSomethingElseEndsTheAttempt) {
  int begun = 0;
  const Timeline timeline = run_to_the_end(
      alike_workers(), [](Worker& worker) { all_reduce_once(worker, worker.index() == kWorkers - 1 ? 2e9 : 1e9); },
      &begun);
  EXPECT_EQ(begun, kWorkers);
  EXPECT_THAT(timeline.classes, IsEmpty());
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_THAT(timeline.notes[0], HasSubstr("every worker was simulated: worker 5 did not do the same as worker 0"));
}

// Programs whose workers were declared alike and are not.
class SimSymmetryOfMany : public testing::Test {
 protected:
  static constexpr int kMany = 40;

  // Runs it with and without symmetry, and expects of every representative what it does if all workers run.
  static Timeline expect_full_figures(const Program& program, EngineOptions options = alike_workers(kMany)) {
    Timeline some = run_to_the_end(options, program);
    options.alike.clear();
    const Timeline all = run_to_the_end(options, program);
    EXPECT_FALSE(some.classes.empty());
    int workers = 0;
    for (const WorkerClass& one : some.classes) {
      workers += one.workers;
      EXPECT_EQ(texts_of(some, one.representative), texts_of(all, one.representative));
    }
    EXPECT_EQ(workers, kMany);
    return some;
  }
  static std::vector<int> sizes_of(const Timeline& timeline) {
    std::vector<int> sizes;
    for (const WorkerClass& one : timeline.classes) sizes.push_back(one.workers);
    return sizes;
  }

 private:
  static std::vector<std::string> texts_of(const Timeline& timeline, int worker) {
    std::vector<std::string> texts;
    for (const Record& record : timeline.records) {
      if (record.worker != worker) continue;
      texts.push_back(
          fmt::format("{} {} {} {} {}", record.name, record.device, record.start_ns, record.end_ns, record.bytes));
    }
    return texts;
  }
};

TEST_F(SimSymmetryOfMany, AMiddleWorkerOfAVeryLargeClassIsAWitness) {
  constexpr int kVeryMany = 65'536;
  const Timeline timeline = run_to_the_end(alike_workers(kVeryMany), [](Worker& worker) {
    worker.devices()[0]->compute_stream().launch(cost_only(worker.index() == kVeryMany / 2 ? 2e9 : 1e9));
  });
  EXPECT_THAT(sizes_of(timeline), ElementsAre(2, kVeryMany / 2 - 1, 1, kVeryMany / 2 - 2)) << "ends, and between them";
  EXPECT_THAT(timeline.notes, IsEmpty());
  ASSERT_EQ(timeline.records.size(), 4U);
  for (const Record& record : timeline.records) {
    EXPECT_EQ(record.flops, record.worker == kVeryMany / 2 ? 2e9 : 1e9) << record.worker;
  }
}

TEST_F(SimSymmetryOfMany, MembersOnEitherSideOfABorderAreFound) {
  constexpr int kBorder = kMany * 2 / 3;
  const Timeline timeline = expect_full_figures(
      [](Worker& worker) { all_reduce_once(worker, worker.index() >= kBorder ? 2e9 : 1e9, kMany); });
  for (const WorkerClass& one : timeline.classes) {
    const bool is_beyond = one.representative >= kBorder;
    EXPECT_LE(one.representative + one.workers, is_beyond ? kMany : kBorder) << one.representative;
  }
}

// Each worker copies to its GPU on its own, so the difference shows before any record can be compared.
TEST_F(SimSymmetryOfMany, FlowsThatDifferSplitAClass) {
  for (const std::int64_t other : {1'000, 3'000'000}) {
    const Timeline timeline = expect_full_figures([other](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const std::int64_t count = worker.index() == kMany - 1 ? other : 1'000'000;
      gpu.compute_stream().copy(gpu.allocate(DType::f32, {count}), worker.cpu().allocate(DType::f32, {count}));
      gpu.synchronize();
      all_reduce_once(worker, 1e9, kMany);
    });
    EXPECT_THAT(sizes_of(timeline), ElementsAre(1, kMany - 2, 1)) << other;
  }
}

TEST_F(SimSymmetryOfMany, ClassesThatMeetAreSplitAlike) {
  constexpr int kHalf = kMany / 2;
  EngineOptions options = alike_workers(kMany);
  for (int worker = kHalf; worker < kMany; ++worker) options.alike[static_cast<std::size_t>(worker)] = 1;
  const Timeline timeline = expect_full_figures(
      [](Worker& worker) {
        Device& gpu = *worker.devices()[0];
        const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {1'000'000})};
        const std::vector<Stream*> streams = {&gpu.compute_stream()};
        const int first = worker.index() % kHalf;
        gpu.compute_stream().launch(cost_only(worker.index() == kHalf - 1 ? 2e9 : 1e9));
        const std::vector<DeviceId> pair = {gpu_of(first), gpu_of(first + kHalf)};
        worker.communicator(pair).all_reduce(buffers, Reduction::sum, streams);
        gpu.synchronize();
      },
      options);
  EXPECT_EQ(timeline.classes.size() % 2, 0U);
  EXPECT_LT(timeline.classes.size(), 8U);
}

TEST_F(SimSymmetryOfMany, WorkersThatAllDifferAreAllSimulated) {
  int begun = 0;
  const Timeline timeline = run_to_the_end(
      alike_workers(kMany), [](Worker& worker) { all_reduce_once(worker, 1e9 * (1 + worker.index()), kMany); }, &begun);
  EXPECT_EQ(begun, kMany);
  EXPECT_THAT(timeline.classes, IsEmpty());
  EXPECT_THAT(timeline.notes, ElementsAre(AllOf(HasSubstr("every worker was simulated: worker "),
                                                HasSubstr("so that at most 4 workers are alike"))));
}

TEST(SimSymmetry, WorkersThatShareAnObjectAreAllSimulated) {
  int begun = 0;
  const Timeline timeline = run_to_the_end(
      alike_workers(),
      [](Worker& worker) { worker.shared().object("counter", [] { return std::make_shared<int>(0); }); }, &begun);
  EXPECT_EQ(begun, kWorkers);
  EXPECT_THAT(timeline.notes, ElementsAre(HasSubstr("shares an object with others")));
}

TEST(SimSymmetry, CopiesBetweenWorkersAreAllSimulated) {
  const Timeline timeline = run_to_the_end(alike_workers(), [](Worker& worker) {
    const Tensor mine = worker.devices()[0]->allocate(DType::f32, {1000});
    const Tensor theirs = worker.device(gpu_of((worker.index() + 1) % kWorkers)).allocate(DType::f32, {1000});
    worker.devices()[0]->compute_stream().copy(theirs, mine);
    worker.devices()[0]->synchronize();
  });
  EXPECT_EQ(timeline.records.size(), std::size_t{kWorkers});
  EXPECT_THAT(timeline.notes, ElementsAre(HasSubstr("uses a device of another worker")));
}

constexpr int kGpusEach = 4;

EngineOptions alike_workers_of_four() {
  auto topology = std::make_shared<Topology>("machines of four GPUs");
  const auto cpu = std::make_shared<const DeviceModel>(device_model("test CPU", 4, 0));
  const auto gpu = std::make_shared<const DeviceModel>(device_model("test GPU", 1, 2));
  const auto link = link_model(kLinkBytesPerS, kLinkLatencyS);
  for (int worker = 0; worker < kWorkers; ++worker) {
    const std::string prefix = "w" + std::to_string(worker) + ".";
    const NodeIndex middle =
        topology->add_node({.name = prefix + "switch", .kind = NodeKind::network_switch, .worker = worker});
    const auto add = [&](const std::string& name, NodeKind kind, std::shared_ptr<const DeviceModel> model) {
      const NodeIndex node =
          topology->add_node({.name = prefix + name, .kind = kind, .worker = worker, .device = std::move(model)});
      topology->add_link(node, middle, link);
    };
    add("cpu0", NodeKind::cpu, cpu);
    for (int i = 0; i < kGpusEach; ++i) add("gpu" + std::to_string(i), NodeKind::gpu, gpu);
  }
  EngineOptions options = gpu_workers(topology, kWorkers, kGpusEach);
  options.alike.assign(kWorkers, 0);
  return options;
}

// In each step a collective of two other GPUs meets one of all GPUs that is under way.
void meet_step_by_step(Worker& worker) {
  std::vector<Tensor> buffers;
  std::vector<DeviceId> all;
  std::vector<Stream*> streams, others;
  for (Device* device : worker.devices()) {
    all.push_back(device->id());
    buffers.push_back(device->allocate(DType::f32, {1'000'000}));
    streams.push_back(&device->stream(1));
    others.push_back(&device->stream(2));
  }
  for (int step = 0; step + 1 < kGpusEach; ++step) {
    worker.begin_step(step);
    worker.communicator(all).all_reduce(buffers, Reduction::sum, streams);
    const auto two = [&](auto& of) { return std::vector(of.begin() + step, of.begin() + step + 2); };
    for (Stream* stream : two(others)) stream->launch(cost_only(1e8));
    worker.communicator(two(all)).all_reduce(two(buffers), Reduction::sum, two(others));
    worker.end_step();
  }
}

TEST(SimSymmetry, FlowsThatMeetForTheFirstTimeAreFoundInFewRuns) {
  int runs = 0;
  const Timeline some = run_to_the_end(alike_workers_of_four(), meet_step_by_step, nullptr, &runs);
  EXPECT_LE(runs, 2);
  EXPECT_THAT(some.notes, IsEmpty());
  ASSERT_EQ(some.classes.size(), 1U);
  EngineOptions every = alike_workers_of_four();
  every.alike.clear();
  const Timeline all = run_to_the_end(every, meet_step_by_step);
  EXPECT_EQ(some.records.size() * kWorkers, all.records.size());
  EXPECT_EQ(some.records.back().end_ns, all.records.back().end_ns);
}

TEST(SimSymmetry, AnErrorIsThatOfTheFullSimulation) {
  const auto message = [](const EngineOptions& options) {
    try {
      run_to_the_end(options, [](Worker& worker) {
        if (worker.index() == 3) throw RunError("worker 3 has had enough");
        all_reduce_once(worker);
      });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EngineOptions every = alike_workers();
  every.alike.clear();
  EXPECT_EQ(message(every), "worker 3 has had enough");
  EngineOptions declared = alike_workers();
  declared.alike[3] = 1;
  EXPECT_EQ(message(declared), "worker 3 has had enough");
}

// Only the witness has a limit, and it expires, because its call takes as long as everybody's.
TEST(SimSymmetry, ATimeLimitOfOneWorkerEndsTheRunAsInTheFullSimulation) {
  const auto message = [](const EngineOptions& options, double limit_s) {
    try {
      run_to_the_end(options, [limit_s](Worker& worker) {
        Device& gpu = *worker.devices()[0];
        const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {100'000'000})};
        const std::vector<Stream*> streams = {&gpu.compute_stream()};
        Communicator& all = worker.communicator(gpus_of(kWorkers));
        if (worker.index() == kWorkers - 1) all.set_timeout(limit_s);
        all.all_reduce(buffers, Reduction::sum, streams);
        gpu.synchronize();
      });
    } catch (const DeadlineExceededError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EngineOptions every = alike_workers();
  every.alike.clear();
  EXPECT_THAT(message(every, 1e-6), HasSubstr("task:5"));
  EXPECT_EQ(message(alike_workers(), 1e-6), message(every, 1e-6));
  EXPECT_EQ(message(alike_workers(), 1e6), "no error");
}

TEST(SimSymmetry, MachinesThatDifferAreNotAlike) {
  EngineOptions options = gpu_workers(make_star({.workers = kWorkers, .slow = {2}}), kWorkers);
  options.alike.assign(kWorkers, 0);
  const Timeline timeline = run_to_the_end(options, [](Worker& worker) { all_reduce_once(worker); });
  ASSERT_EQ(timeline.classes.size(), 2U);
  EXPECT_EQ(timeline.classes[0].workers, kWorkers - 1);
  EXPECT_EQ(timeline.classes[1].representative, 2);
}

TEST(SimSymmetry, ValuesAndSeedsTakeEveryWorker) {
  int begun = 0;
  EngineOptions options = alike_workers();
  options.schedule_seed = 1;
  run_to_the_end(
      options, [](Worker& worker) { all_reduce_once(worker); }, &begun);
  EXPECT_EQ(begun, kWorkers);
  options = alike_workers();
  options.collectives = CollectiveFidelity::message;
  run_to_the_end(
      options, [](Worker& worker) { all_reduce_once(worker); }, &begun);
  EXPECT_EQ(begun, kWorkers);
  options = alike_workers();
  auto in_turn = std::make_shared<Topology>(*options.topology);
  in_turn->facts().exchanges_in_turn = true;
  options.topology = in_turn;
  run_to_the_end(
      options, [](Worker& worker) { all_reduce_once(worker); }, &begun);
  EXPECT_EQ(begun, kWorkers);
}

}  // namespace
}  // namespace tandem
