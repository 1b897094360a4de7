// The steps of NCCL's collectives: what waits for what, how long they take, and what they share.
#include <cmath>

#include "engine/sim/collectives/nccl/surveyor.h"
#include "engine/sim/collectives/steps/lanes.h"
#include "engine/sim/collectives/steps/rehearsal.h"
#include "engine/sim/collectives/steps/step_planner.h"
#include "tests/engine/sim_support.h"
#include "topologies/generators/cluster.h"

namespace tandem {
namespace {

using sim::steps::StepGraph;

EngineOptions step_options(const std::string& machine, int workers, int gpus, CollectiveFidelity fidelity) {
  EngineOptions options;
  options.topology = std::make_shared<const Topology>(make_cluster(machine, workers));
  options.collectives = fidelity;
  options.workers.clear();
  for (int task = 0; task < workers; ++task) {
    options.workers.push_back(
        {.job = "worker", .task = task, .topology_worker = task, .device_type = DeviceType::gpu, .device_count = gpus});
  }
  return options;
}

std::vector<NodeIndex> all_gpus(const Topology& topology) {
  std::vector<NodeIndex> gpus;
  for (int worker = 0; worker < topology.worker_count(); ++worker) {
    for (const NodeIndex gpu : topology.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
  }
  return gpus;
}

// Starts a collective of the whole group on a stream of every GPU.
void start_collective(Worker& worker, const std::vector<DeviceId>& ids, CollectiveKind kind, std::int64_t count,
                      int stream = 0) {
  std::vector<Tensor> tensors, parts;
  std::vector<Stream*> streams;
  const auto all = static_cast<std::int64_t>(ids.size());
  for (Device* device : worker.devices()) {
    tensors.push_back(device->allocate(DType::f32, {count}));
    parts.push_back(device->allocate(DType::f32, {kind == CollectiveKind::all_to_all ? count : count / all}));
    streams.push_back(&device->stream(stream));
  }
  Communicator& communicator = worker.communicator(ids);
  switch (kind) {
    case CollectiveKind::all_gather:
      return communicator.all_gather(tensors, parts, streams);
    case CollectiveKind::all_to_all:
      return communicator.all_to_all(tensors, parts, streams);
    case CollectiveKind::broadcast:
      return communicator.broadcast(tensors, 1, streams);
    default:
      return communicator.all_reduce(tensors, Reduction::sum, streams);
  }
}

Timeline collective_run(const EngineOptions& options, int gpus, CollectiveKind kind, std::int64_t count) {
  const auto ids = gpus_of(static_cast<int>(options.workers.size()), gpus);
  return simulate(options, [&](Worker& worker) {
    start_collective(worker, ids, kind, count);
    for (Device* device : worker.devices()) device->stream(0).synchronize();
  });
}

CollectiveTiming only_timing(const Timeline& timeline) {
  return collective_timings(timeline.records).front();
}

double ns_of(const std::string& machine, int workers, int gpus, CollectiveFidelity fidelity, CollectiveKind kind,
             std::int64_t count) {
  const Timeline timeline = collective_run(step_options(machine, workers, gpus, fidelity), gpus, kind, count);
  return static_cast<double>(only_timing(timeline).duration_ns);
}

// Three edges in a row, on which each of `chunks` takes a second.
StepGraph pipeline_of(int chunks) {
  StepGraph graph;
  graph.gpus = 4;
  for (int hop = 0; hop < 3; ++hop) graph.add_edge({.from = hop, .to = hop + 1});
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int hop = 0; hop < 3; ++hop) {
      const int added = graph.add({.edge = hop, .bytes = 1, .copy_s = 1});
      if (hop > 0) graph.after_arrived(added, added - 1);
    }
  }
  graph.inside_s = 0.25;
  graph.finish();
  return graph;
}

TEST(Steps, ChunksFollowEachOther) {
  EXPECT_DOUBLE_EQ(sim::steps::rehearse(pipeline_of(1)), 3 + 0.75);
  EXPECT_DOUBLE_EQ(sim::steps::rehearse(pipeline_of(10)), 12 + 0.75);
}

TEST(Steps, WaitUntilABufferIsFree) {
  StepGraph graph;
  graph.gpus = 3;
  graph.add_edge({.from = 0, .to = 1});
  graph.add_edge({.from = 1, .to = 2});
  const int first = graph.add({.edge = 0, .bytes = 1, .copy_s = 1});
  const int passed_on = graph.add({.edge = 1, .bytes = 1, .copy_s = 5});
  const int second = graph.add({.edge = 0, .bytes = 1, .copy_s = 1});
  graph.after_arrived(passed_on, first);
  graph.after_sent(second, passed_on);
  graph.finish();
  EXPECT_DOUBLE_EQ(sim::steps::rehearse(graph), 7);
}

TEST(Steps, APointIsReachedWhenAllHaveArrived) {
  StepGraph graph;
  graph.gpus = 1;
  for (int edge = 0; edge < 3; ++edge) graph.add_edge({.from = 0});
  const int point = graph.add({});
  graph.after_arrived(point, graph.add({.edge = 0, .bytes = 1, .copy_s = 2}));
  graph.after_arrived(point, graph.add({.edge = 1, .bytes = 1, .copy_s = 3}));
  graph.after_arrived(graph.add({.edge = 2, .bytes = 1, .copy_s = 1}), point);
  graph.finish();
  EXPECT_DOUBLE_EQ(sim::steps::rehearse(graph), 4);
}

TEST(Steps, AreFittedToTheTimeOfThePlan) {
  StepGraph graph = pipeline_of(10);
  sim::steps::fit_steps(graph, 13.2);  // 12 of copies
  EXPECT_NEAR(graph.lead_s + sim::steps::rehearse(graph), 13.2, 1e-9);
  EXPECT_GT(graph.inside_s, 0.25);
  StepGraph slow = pipeline_of(10);
  sim::steps::fit_steps(slow, 5);
  EXPECT_EQ(slow.inside_s, 0);
  EXPECT_DOUBLE_EQ(slow.lead_s + sim::steps::rehearse(slow), 12);
  StepGraph launched = pipeline_of(1);
  sim::steps::fit_steps(launched, 100);  // more than steps can take
  EXPECT_NEAR(launched.lead_s + sim::steps::rehearse(launched), 100, 1e-9);
  EXPECT_DOUBLE_EQ(launched.inside_s, 1);
}

// Every lane is a ring through all GPUs, and lanes over a switch leave a domain by different GPUs.
TEST(Steps, LanesPassEveryGpuOnce) {
  for (const std::string machine : {"dgx1-v100", "hgx-h100", "mi300x-8gpu", "pcie-8gpu"}) {
    const Topology topology = make_cluster(machine, 2);
    const std::vector<NodeIndex> gpus = all_gpus(topology);
    Router router(topology);
    const sim::nccl::Surveyor surveyor(topology, router);
    const sim::nccl::Communicator group(surveyor.survey(gpus), {});
    const sim::steps::Lanes lanes(group, group.plan({CollectiveKind::all_gather, 1 << 26}));
    ASSERT_TRUE(lanes.is_complete());
    for (int lane = 0; lane < lanes.count(); ++lane) {
      const sim::steps::Ring ring = lanes.ring(lane);
      EXPECT_EQ(std::set<int>(ring.gpus.begin(), ring.gpus.end()).size(), gpus.size()) << machine;
      EXPECT_EQ(ring.gpus.size(), gpus.size()) << machine;
      for (std::size_t i = 0; i < ring.gpus.size(); ++i) EXPECT_EQ(ring.edges[i].sender, ring.gpus[i]) << machine;
      EXPECT_EQ(std::ranges::count_if(ring.edges, [](const auto& edge) { return edge.crosses_network; }), 2) << machine;
    }
    if (machine == "hgx-h100") {
      EXPECT_EQ(lanes.count(), 8);
      EXPECT_NE(lanes.between(0, 0, 1).from_nic, lanes.between(1, 0, 1).from_nic);
    }
  }
}

// Alone, both fidelities take the time of the plan: rings, trees, NVLS and their protocols, on one and several
// machines.
TEST(NcclMessages, TakeTheTimeOfFluidWhereTheyAreAlone) {
  const std::vector<std::tuple<std::string, int, int>> machines = {
      {"dgx-a100", 1, 8}, {"hgx-h100", 1, 8}, {"dgx1-v100", 1, 5}, {"mi300x-8gpu", 1, 8},
      {"hgx-h100", 2, 8}, {"aws-p4d", 2, 8},  {"hgx-h100", 4, 8}};
  for (const auto& [machine, workers, gpus] : machines) {
    for (const std::int64_t count : {1 << 8, 1 << 16, 1 << 20, 1 << 26}) {
      const double fluid_ns =
          ns_of(machine, workers, gpus, CollectiveFidelity::fluid, CollectiveKind::all_reduce, count);
      const double message_ns =
          ns_of(machine, workers, gpus, CollectiveFidelity::message, CollectiveKind::all_reduce, count);
      EXPECT_NEAR(message_ns / fluid_ns, 1, 0.01) << workers << " x " << gpus << " of " << machine << ", " << count;
    }
  }
}

// The steps were not made to measure: with the constants of the mechanism alone, they take the time of the plan where
// latencies decide, within a fifth.
TEST(NcclMessages, KeepTheConstantsOfTheMechanism) {
  for (const auto& [machine, workers] :
       std::vector<std::pair<std::string, int>>{{"dgx-a100", 1}, {"dgx1-v100", 1}, {"hgx-h100", 4}, {"dgx-a100", 2}}) {
    const Topology topology = make_cluster(machine, workers);
    Router router(topology);
    const sim::nccl::Surveyor surveyor(topology, router);
    const sim::nccl::Communicator group(surveyor.survey(all_gpus(topology)), {});
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      const sim::nccl::Call call{kind, 1024, true};
      const auto planned = sim::steps::plan_steps(group, call, 0, group.plan(call));
      const double usual_us = group.mechanism().latencies(group.choose(call)).inside_us;
      EXPECT_NEAR(planned.graph->inside_s * 1e6 / usual_us, 1, 0.2) << workers << " of " << machine;
    }
  }
}

TEST(NcclMessages, RecordTheAlgorithmOfThePlanAndRepeatThemselves) {
  const EngineOptions options = step_options("dgx1-v100", 2, 8, CollectiveFidelity::message);
  const Timeline timeline = collective_run(options, 8, CollectiveKind::all_reduce, 1 << 20);
  EXPECT_EQ(only_timing(timeline).record->algorithm,
            only_timing(collective_run(step_options("dgx1-v100", 2, 8, CollectiveFidelity::fluid), 8,
                                       CollectiveKind::all_reduce, 1 << 20))
                .record->algorithm);
  EXPECT_EQ(text_of(timeline), text_of(collective_run(options, 8, CollectiveKind::all_reduce, 1 << 20)));
}

// The steps of a collective move the bytes of its flows.
TEST(NcclMessages, CarryTheBytesOfThePlanThroughNics) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                    CollectiveKind::broadcast}) {
    std::vector<double> carried;
    for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
      const Timeline timeline = collective_run(step_options("hgx-h100", 2, 8, fidelity), 8, kind, 1 << 26);
      double& bytes = carried.emplace_back(0);
      for (const LinkUse& use : timeline.links) {
        if (use.from_kind == "nic" && use.kind == "network") bytes += use.bytes;
      }
    }
    EXPECT_GT(carried[0], 0);
    // A ring that is cut at the root enters the root's domain only if it has GPUs before the root.
    EXPECT_NEAR(carried[1] / carried[0], 1, kind == CollectiveKind::broadcast ? 0.1 : 0.01) << name_of(kind);
  }
}

// While one of two collectives launches or waits for a step, the other one has the links.
TEST(NcclMessages, TwoCollectivesShareTheLinks) {
  const EngineOptions options = step_options("dgx-a100", 1, 8, CollectiveFidelity::message);
  const std::int64_t count = 1 << 28;
  const auto ids = gpus_of(1, 8);
  const Timeline timeline = simulate(options, [&](Worker& worker) {
    start_collective(worker, ids, CollectiveKind::all_reduce, count, 0);
    start_collective(worker, ids, CollectiveKind::all_to_all, count, 1);
    for (Device* device : worker.devices()) {
      device->stream(0).synchronize();
      device->stream(1).synchronize();
    }
  });
  const double reduce_ns = ns_of("dgx-a100", 1, 8, CollectiveFidelity::message, CollectiveKind::all_reduce, count);
  const double all_to_all_ns = ns_of("dgx-a100", 1, 8, CollectiveFidelity::message, CollectiveKind::all_to_all, count);
  const auto timings = collective_timings(timeline.records);
  ASSERT_EQ(timings.size(), 2U);
  const auto longest_ns = static_cast<double>(std::max(timings[0].duration_ns, timings[1].duration_ns));
  EXPECT_GT(longest_ns, 1.2 * std::max(reduce_ns, all_to_all_ns));
  EXPECT_LT(longest_ns, reduce_ns + all_to_all_ns);
}

// A root that comes first has sent when the others come; with flows nothing moves before all have come.
TEST(NcclMessages, RanksBeginBeforeTheLastHasCome) {
  const auto ids = gpus_of(2, 1);
  std::vector<double> after_last_ns;
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    for (const int root : {0, 1}) {
      const Timeline timeline = simulate(step_options("dgx-a100", 2, 1, fidelity), [&](Worker& worker) {
        Stream& stream = worker.devices()[0]->stream(0);
        if (worker.index() == 1) stream.launch(cost_only(1e12));  // late
        const std::vector<Tensor> tensors = {worker.devices()[0]->allocate(DType::f32, {1 << 18})};
        const std::vector<Stream*> streams = {&stream};
        worker.communicator(ids).broadcast(tensors, root, streams);
        stream.synchronize();
      });
      after_last_ns.push_back(static_cast<double>(only_timing(timeline).duration_ns));
    }
  }
  const double early_root_ns = after_last_ns[2], late_root_ns = after_last_ns[3];
  EXPECT_LT(early_root_ns, 0.8 * after_last_ns[0]);
  EXPECT_GT(early_root_ns, 0);
  EXPECT_NEAR(late_root_ns / after_last_ns[1], 1, 0.01);
}

// A GPU sends only once it has come, whoever's NIC its data takes.
TEST(NcclMessages, WaitForTheDataOfALateGpu) {
  for (const auto& [machine, kind] : {std::pair{"aws-p3dn", CollectiveKind::all_reduce},
                                      {"aws-p3dn", CollectiveKind::all_gather},
                                      {"pcie-8gpu", CollectiveKind::all_gather},
                                      {"hgx-h100", CollectiveKind::all_to_all}}) {
    const EngineOptions options = step_options(machine, 2, 8, CollectiveFidelity::message);
    const auto ids = gpus_of(2, 8);
    const double alone_ns = ns_of(machine, 2, 8, CollectiveFidelity::message, kind, 1 << 20);
    for (std::size_t late = 0; late < 8; ++late) {
      const Timeline timeline = simulate(options, [&](Worker& worker) {
        if (worker.index() == 0) worker.devices()[late]->stream(0).launch(cost_only(1e12));
        start_collective(worker, ids, kind, 1 << 20);
        for (Device* device : worker.devices()) device->stream(0).synchronize();
      });
      const double late_ns = static_cast<double>(only_timing(timeline).duration_ns);
      EXPECT_GT(late_ns, 0.3 * alone_ns) << name_of(kind) << " on " << machine << ", GPU " << late;
      EXPECT_LT(late_ns, 1.3 * alone_ns) << name_of(kind) << " on " << machine << ", GPU " << late;
    }
  }
}

TEST(NcclMessages, AreOfDomainsWithOneGpuToo) {
  for (const int gpus : {4, 8}) {
    std::vector<double> ns;
    for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
      EngineOptions options = step_options("hgx-h100", 2, gpus, fidelity);
      options.workers[1].device_count = 1;
      std::vector<DeviceId> ids = gpus_of(1, gpus);
      ids.push_back(gpu_of(1, 0));
      const Timeline timeline = simulate(options, [&](Worker& worker) {
        start_collective(worker, ids, CollectiveKind::all_reduce, 1 << 24);
        for (Device* device : worker.devices()) device->stream(0).synchronize();
      });
      ns.push_back(static_cast<double>(only_timing(timeline).duration_ns));
    }
    EXPECT_NEAR(ns[1] / ns[0], 1, 0.1) << gpus << " and 1";
  }
}

TEST(NcclMessages, SayWhatIsNotSimulatedStepByStep) {
  EngineOptions options = step_options("hgx-h100", 4, 8, CollectiveFidelity::message);
  options.nccl = {{"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_ALGO", "collnetdirect"}};
  const Timeline timeline = collective_run(options, 8, CollectiveKind::all_reduce, 1 << 20);
  EXPECT_THAT(timeline.notes, testing::Contains(testing::HasSubstr(
                                  "all_reduce of 32 GPUs was simulated as with fluid, because the steps of CollNet")));
  options.nccl.clear();
  EXPECT_THAT(collective_run(options, 8, CollectiveKind::all_reduce, 1 << 20).notes,
              testing::Not(testing::Contains(testing::HasSubstr("as with fluid"))));
}

}  // namespace
}  // namespace tandem
