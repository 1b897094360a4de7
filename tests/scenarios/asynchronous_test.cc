// What parameter servers promise: a slow worker slows nobody else, every update is applied exactly once, and how stale
// updates are is measured.
#include <gtest/gtest.h>

#include <numeric>

#include "scenarios/job/job.h"
#include "strategies/input/input_workers.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategies.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/gradient_updates.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

constexpr int kWorkers = 4;
constexpr int kSlow = 2;

Scenario layers(const std::string& strategy) {
  return parse_scenario(
      "schema_version: 1\nworkload: {kind: layers, model: layers_small, batch: 16384, bucket_bytes: 1MB}\n"
      "strategy: {name: " +
          strategy +
          "}\nengine: {name: sim}\n"
          "topology: {cluster: {node: hgx-h100, workers: 6, overrides: {network: {remote_call: 0s, "
          "remote_call_bandwidth: 0B/s}}}}\n"
          "devices: {workers: 4, per_worker: 1}\nsteps: 24\nwarmup_steps: 4\n",
      "test.yaml");
}

using ChangeNode = std::function<void(Node&)>;
using ChangeLink = std::function<std::shared_ptr<const LinkModel>(const Topology&, const Link&)>;

std::shared_ptr<const Topology> changed(const Topology& base, const ChangeNode& node, const ChangeLink& link) {
  auto copy = std::make_shared<Topology>(base.name() + ", changed");
  for (NodeIndex i = 0; i < base.node_count(); ++i) {
    Node same = base.node(i);
    if (node) node(same);
    copy->add_node(std::move(same));
  }
  for (LinkIndex i = 0; i < base.link_count(); ++i) {
    const Link& same = base.link(i);
    copy->add_link(same.from, same.to, link ? link(base, same) : same.model, same.direction);
  }
  return copy;
}

std::shared_ptr<const Topology> with_slow_gpus(const Topology& base, double factor) {
  return changed(base,
                 [factor](Node& node) {
                   if (node.worker != kSlow || node.kind != NodeKind::gpu) return;
                   auto slow = std::make_shared<DeviceModel>(*node.device);
                   for (auto& [dtype, peak] : slow->peak_flops_per_s) peak.value /= factor;
                   slow->memory_bandwidth_bytes_per_s.value /= factor;
                   node.device = slow;
                 },
                 {});
}

std::shared_ptr<const Topology> with_slow_network(const Topology& base, double factor) {
  return changed(base, {}, [factor](const Topology& topology, const Link& link) {
    const bool is_slow = topology.node(link.from).worker == kSlow || topology.node(link.to).worker == kSlow;
    if (!is_slow || link.model->kind != LinkKind::network) return link.model;
    auto slow = std::make_shared<LinkModel>(*link.model);
    slow->bandwidth_bytes_per_s.value /= factor;
    return std::shared_ptr<const LinkModel>(slow);
  });
}

double ratio(const Report& a, const Report& b, int worker) {
  const auto median = [worker](const Report& report) {
    return static_cast<double>(report.summary.workers.at(static_cast<std::size_t>(worker)).step_time.median);
  };
  return median(a) / median(b);
}

using Slow = std::shared_ptr<const Topology> (*)(const Topology& base, double factor);

class SlowWorker : public testing::TestWithParam<std::pair<Slow, double>> {};

// The server's calls, for which workers wait for each other, cost nothing here.
TEST_P(SlowWorker, SlowsNobodyElseWithAParameterServer) {
  const auto [slow, factor] = GetParam();
  const Scenario scenario = layers("parameter_server");
  const Report usual = run_unscaled(scenario);
  const Report report = run_unscaled(scenario, slow(*scenario.topology, factor));
  ASSERT_EQ(report.summary.workers.size(), kWorkers);
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (worker == kSlow) {
      EXPECT_GT(ratio(report, usual, worker), 2);
    } else {
      EXPECT_NEAR(ratio(report, usual, worker), 1, 0.01) << worker;
    }
  }
  EXPECT_GT(report.throughput(), 0.75 * usual.throughput());
  EXPECT_GT(report.metrics.at("staleness_max"), usual.metrics.at("staleness_max"))
      << "while the slow worker makes one update, the others make more than before";
}

TEST_P(SlowWorker, SlowsAllThatAreInStepWithIt) {
  const auto [slow, factor] = GetParam();
  const Scenario scenario = layers("multi_worker_mirrored");
  const Report usual = run_unscaled(scenario);
  const Report report = run_unscaled(scenario, slow(*scenario.topology, factor));
  for (int worker = 0; worker < kWorkers; ++worker) EXPECT_GT(ratio(report, usual, worker), 2) << worker;
}

INSTANTIATE_TEST_SUITE_P(Simulated, SlowWorker,
                         testing::Values(std::pair<Slow, double>{&with_slow_gpus, 5},
                                         std::pair<Slow, double>{&with_slow_network, 2000}),
                         [](const auto& instance) { return instance.index == 0 ? "Gpus" : "Network"; });

// Each worker adds 1 to every element in every step, through each of its replicas.
struct Counted {
  double least = 0, most = 0;
  Staleness staleness;
};

Counted count(Worker& worker, const Scenario& scenario, int steps) {
  const auto strategy = make_strategy("parameter_server", worker, {.placement = scenario.strategy.placement});
  const auto variable = strategy->create_variable({.name = "count", .shape = {7}, .initial_value = {}});
  GradientUpdates updates;
  for (int step = 0; step < steps; ++step) {
    strategy->run([&](const Value::Parts&) {
      Device& device = get_replica_context()->device();
      const Tensor read = variable->value();
      const Tensor one = device.allocate(DType::f32, {7});
      device.compute_stream().launch(op::fill(one, 1));
      updates.begin({variable}, {one});
      updates.apply([](Variable& changed, const Tensor& gradient) { changed.assign_add(gradient); });
      return Value();
    });
  }
  Counted counted{.staleness = static_cast<ParameterServerStrategy&>(*strategy).staleness()};
  std::vector<DeviceId> hosts;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job == "worker") hosts.push_back({.job = spec.job, .task = spec.task, .type = DeviceType::cpu});
  }
  agree_over(worker, hosts)(true);  // until all have made their updates
  const Tensor total = variable->saved_value();
  worker.cpu().synchronize();
  const auto values = total.values<float>();
  counted.least = *std::min_element(values.begin(), values.end());
  counted.most = *std::max_element(values.begin(), values.end());
  return counted;
}

class EveryUpdate : public testing::TestWithParam<const char*> {};

TEST_P(EveryUpdate, IsAppliedExactlyOnce) {
  constexpr int kSteps = 50;
  const Scenario scenario = parse_scenario(
      std::string("schema_version: 1\nworkload: {kind: mlp, batch: 8}\nstrategy: {name: parameter_server}\n"
                  "devices: {workers: 4, per_worker: 2, ps: 2}\nsteps: 2\n") +
          GetParam(),
      "test.yaml");
  EngineOptions options;
  options.workers = tasks_of(scenario);
  options.topology = scenario.topology;
  options.values = ValueMode::real;
  const auto engine = open_engine(scenario.engine.name, options);
  std::vector<Counted> counted(options.workers.size());
  engine->run([&](Worker& worker) {
    if (worker.job() == "worker") counted[static_cast<std::size_t>(worker.index())] = count(worker, scenario, kSteps);
  });
  for (int worker = 0; worker < kWorkers; ++worker) {
    const Counted& result = counted[static_cast<std::size_t>(worker)];
    EXPECT_EQ(result.least, kWorkers * 2 * kSteps);
    EXPECT_EQ(result.most, kWorkers * 2 * kSteps);
    EXPECT_EQ(result.staleness.updates, kSteps);
    EXPECT_LE(result.staleness.maximum, (kWorkers - 1) * kSteps);
    EXPECT_GE(result.staleness.sum, 0);
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, EveryUpdate,
                         testing::Values("engine: {name: cpu}\n",
                                         "engine: {name: sim}\ntopology: {cluster: {node: dgx-a100, workers: 4}}\n"),
                         [](const auto& instance) { return instance.index == 0 ? "cpu" : "sim"; });

TEST(Staleness, IsThatOfEqualWorkersInARing) {
  const Report report = run_unscaled(layers("parameter_server"));
  EXPECT_GT(report.metrics.at("staleness_mean"), 0);
  EXPECT_LE(report.metrics.at("staleness_mean"), kWorkers) << "each other worker makes about one update meanwhile";
  EXPECT_GE(report.metrics.at("staleness_max"), report.metrics.at("staleness_mean"));
}

}  // namespace
}  // namespace tandem
