// Collectives of messages where one NIC of eight has a quarter of its rate, and where GPUs come one after the other.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <queue>
#include <tuple>

#include "engine/sim/collectives/nccl/surveyor.h"
#include "engine/sim/collectives/steps/lanes.h"
#include "engine/sim/collectives/steps/step_planner.h"
#include "tests/engine/sim_support.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

constexpr std::int64_t kLarge = 1 << 27;  // elements, 512 MiB: rings with Simple
const std::filesystem::path kFolder = TANDEM_SOURCE_DIR "/tests/topologies/samples/made";

Topology two_nodes(const std::string& overrides) {
  return parse_topology_yaml("schema_version: 1\ncluster: {node: dgx-a100, workers: 2" +
                                 (overrides.empty() ? "" : ", overrides: " + overrides) + "}\n",
                             (kFolder / "cluster.yaml").string());
}

EngineOptions rail_options(const std::string& overrides, CollectiveFidelity fidelity) {
  EngineOptions options;
  options.topology = std::make_shared<const Topology>(two_nodes(overrides));
  options.collectives = fidelity;
  options.nccl = {{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "Simple"}};
  options.workers.clear();
  for (int task = 0; task < 2; ++task) {
    options.workers.push_back(
        {.job = "worker", .task = task, .topology_worker = task, .device_type = DeviceType::gpu, .device_count = 8});
  }
  return options;
}

// Every GPU but the first comes later than the one before it by what `late_flops` take.
Timeline reduced(const EngineOptions& options, double late_flops = 0) {
  const auto ids = gpus_of(2, 8);
  return simulate(options, [&](Worker& worker) {
    std::vector<Tensor> tensors;
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) {
      tensors.push_back(device->allocate(DType::f32, {kLarge}));
      streams.push_back(&device->stream(0));
      const auto place = static_cast<double>(worker.index() * 8 + static_cast<int>(tensors.size()) - 1);
      if (late_flops > 0 && place > 0) streams.back()->launch(cost_only(place * late_flops));
    }
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Stream* stream : streams) stream->synchronize();
  });
}

double duration_ns(const Timeline& timeline) {
  return static_cast<double>(collective_timings(timeline.records).front().duration_ns);
}

std::map<std::string, double> bytes_of_nics(const Timeline& timeline) {
  std::map<std::string, double> bytes;
  for (const LinkUse& use : timeline.links) {
    if (use.from_kind == "nic" && use.kind == "network") bytes[use.from] += use.bytes;
  }
  return bytes;
}

// The seconds at which the last byte of each lane has arrived, if nothing else uses its links.
std::vector<double> ends_of_lanes(const sim::steps::StepGraph& graph, int lanes) {
  using Ending = std::tuple<double, std::size_t, int, bool>;
  sim::steps::StepProgress progress(graph);
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  std::vector<int> starting;
  std::size_t number = 0;
  const auto start = [&](double now_s) {
    for (const int transfer : starting)
      endings.emplace(now_s + graph.transfer(transfer).copy_s, number++, transfer, false);
    starting.clear();
  };
  for (int gpu = 0; gpu < graph.gpus; ++gpu) progress.come(gpu, starting);
  start(0);
  std::vector<double> ends(static_cast<std::size_t>(lanes), 0);
  while (!endings.empty()) {
    const auto [now_s, order, transfer, was_sent] = endings.top();
    endings.pop();
    const int lane = graph.transfer(transfer).edge / graph.gpus;
    if (was_sent) {
      ends[static_cast<std::size_t>(lane)] = now_s;
      progress.arrived(transfer, starting);
    } else {
      progress.sent(transfer, starting);
      endings.emplace(now_s + graph.latency_s(transfer), number++, transfer, true);
    }
    start(now_s);
  }
  return ends;
}

const std::vector<std::string> kSlowNics{"{w0.nic5: {slowdown: 4}}", "{w1.nic5: {slowdown: 4}}"};

// All rings carry equal parts, so that the slow one decides: whichever machine's NIC it is, both fidelities say so.
TEST(SlowRail, DecidesTheTimeOfTheCollective) {
  const double healthy_ns = duration_ns(reduced(rail_options("", CollectiveFidelity::message)));
  for (const std::string& overrides : kSlowNics) {
    const double fluid_ns = duration_ns(reduced(rail_options(overrides, CollectiveFidelity::fluid)));
    const double message_ns = duration_ns(reduced(rail_options(overrides, CollectiveFidelity::message)));
    EXPECT_NEAR(message_ns / fluid_ns, 1, 0.06) << overrides;
    EXPECT_GT(message_ns, 3.4 * healthy_ns) << overrides;
    EXPECT_LT(message_ns, 4.2 * healthy_ns) << overrides;
  }
}

// What crosses the network is the same: 2 (n - 1) / n of the buffer out of each machine, an eighth of it by each NIC.
TEST(SlowRail, CarriesTheSameBytes) {
  const double expected = 2.0 * 15 / 16 * kLarge * 4;
  for (const std::string& overrides : {std::string(), kSlowNics[0], kSlowNics[1]}) {
    for (const CollectiveFidelity fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
      const std::map<std::string, double> bytes = bytes_of_nics(reduced(rail_options(overrides, fidelity)));
      ASSERT_EQ(bytes.size(), 16U);
      for (const auto& [nic, sent] : bytes) EXPECT_NEAR(sent / (expected / 8), 1, 0.01) << nic << overrides;
    }
  }
}

// The ring through the slow NIC takes its own time, and the others are over long before.
TEST(SlowRail, OtherRingsEndEarlier) {
  for (const bool is_slow : {false, true}) {
    const Topology topology = two_nodes(is_slow ? kSlowNics[0] : "");
    std::vector<NodeIndex> gpus;
    for (int worker = 0; worker < 2; ++worker) {
      for (const NodeIndex gpu : topology.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
    }
    Router router(topology);
    const sim::nccl::Surveyor surveyor(topology, router);
    const sim::nccl::Communicator group(surveyor.survey(gpus),
                                        sim::nccl::settings_of({{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", "Simple"}}));
    const sim::nccl::Call call{CollectiveKind::all_reduce, double{kLarge} * 4, true};
    const sim::nccl::Plan plan = group.plan(call);
    const sim::steps::Lanes lanes(group, plan);
    ASSERT_EQ(lanes.count(), 8);
    const auto steps = sim::steps::plan_steps(group, call, 0, plan);
    ASSERT_TRUE(steps.graph) << steps.problem;
    std::vector<double> ends = ends_of_lanes(*steps.graph, lanes.count());
    std::ranges::sort(ends);
    EXPECT_NEAR(steps.graph->lead_s + ends[7], plan.fixed_s + plan.transfer_s, 0.01 * plan.transfer_s);
    EXPECT_NEAR(ends[6] / ends[0], 1, 0.01) << "seven NICs are alike";
    if (is_slow) {
      EXPECT_LT(ends[6], 0.35 * ends[7]);
      EXPECT_GT(ends[6], 0.2 * ends[7]);
    } else {
      EXPECT_NEAR(ends[7] / ends[0], 1, 0.01);
    }
  }
}

// A GPU that comes late holds up what needs its data, not more: of the time since the last one came, as much is left
// as where all arrive together or less, and never less than its own share of the bytes takes.
TEST(SlowRail, WaitsForLateGpus) {
  for (const std::string& overrides : {std::string(), kSlowNics[0]}) {
    const EngineOptions options = rail_options(overrides, CollectiveFidelity::message);
    const double together_ns = duration_ns(reduced(options));
    for (const double late_flops : {1e9, 1e10, 1e11}) {
      const double after_last_ns = duration_ns(reduced(options, late_flops));
      EXPECT_LT(after_last_ns, 1.02 * together_ns) << overrides << late_flops;
      EXPECT_GT(after_last_ns, 0.4 * together_ns) << overrides << late_flops;
    }
  }
}

}  // namespace
}  // namespace tandem
