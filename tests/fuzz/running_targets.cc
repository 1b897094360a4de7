#include "tests/fuzz/running_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "engine/engine_info.h"
#include "scenarios/collectives/collective_job.h"
#include "scenarios/job/job.h"
#include "scenarios/run/runner.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/run_checks.h"
#include "topologies/readers/import.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem::fuzz {
namespace {

void expect_nothing(const std::string& problem) {
  if (problem.empty()) return;
  std::fprintf(stderr, "%s\n%s\n", problem.c_str(), job_under_test().c_str());
  TANDEM_CHECK(false, "a run does not hold what every run must");
}

bool is_small(const Topology& topology) {
  constexpr std::size_t kFewNodes = 64;
  return topology.node_count() <= kFewNodes;
}

bool is_small(const WorkloadSettings& workload) {
  constexpr int kSmall = 4096, kFewPasses = 4;
  constexpr std::size_t kFewLayers = 200;
  if (workload.batch > kSmall) return false;
  if (const auto* mlp = std::get_if<MlpSettings>(&workload.kind)) {
    return mlp->hidden.size() <= 8 && std::ranges::all_of(mlp->hidden, [](int width) { return width <= kSmall; });
  }
  const auto* layers = std::get_if<LayersSettings>(&workload.kind);
  if (layers == nullptr) return true;
  return layers->model.layers.size() <= kFewLayers && layers->gradient_accumulation_steps <= kFewPasses;
}

// Whether a run takes a moment even under sanitizers.
bool is_small(const Scenario& scenario) {
  constexpr int kFewDevices = 16, kFewSteps = 4, kFewStages = 8, kMostNodes = 1000;
  const MeshSettings& mesh = scenario.strategy.mesh;
  if (scenario.topology->node_count() > kMostNodes || device_count_problem(scenario)) return false;
  if (training_devices(scenario) > kFewDevices || parameter_servers(scenario) > kFewDevices) return false;
  if (mesh.micro_batches > kFewDevices || mesh.virtual_stages > kFewStages) return false;
  return scenario.steps <= kFewSteps && is_small(scenario.workload);
}

void check_scenario(const std::string& text) {
  const Scenario scenario = parse_scenario(text, "/nowhere/fuzzed.yaml");
  if (!engine_info(scenario.engine.name).needs_topology || !scenario.topology || !is_small(scenario)) return;
  expect_nothing(problem_of_scenario(text));
}

ImportOptions with_a_gpu() {
  ImportOptions options;
  options.gpu = "h100";
  return options;
}

// Every device of one type that the machines have takes part.
void check_machines(std::shared_ptr<const Topology> topology) {
  constexpr std::size_t kFewDevices = 8;
  const std::size_t gpus = topology->nodes_of(0, NodeKind::gpu).size();
  CollectiveJob job;
  job.engine = model_engine().name;
  job.device_type = gpus > 0 ? DeviceType::gpu : DeviceType::cpu;
  job.topology = topology;
  job.workers = topology->worker_count();
  job.devices = gpus > 0 ? static_cast<int>(std::min(gpus, kFewDevices)) : 1;
  CollectiveSweep sweep;
  sweep.sizes = {8, 1 << 20};
  sweep.warmup = 0;
  sweep.iterations = 1;
  run_collective(job, sweep);
  Scenario scenario = parse_scenario(
      fmt::format("schema_version: 1\nname: fuzzed\nworkload: {{kind: mlp, hidden: [8], batch: 8}}\n"
                  "strategy: {{name: multi_worker_mirrored}}\nengine: {{name: sim}}\ntopology: hgx-h100\n"
                  "devices: {{type: {}, workers: {}, per_worker: {}}}\nsteps: 1\nwarmup_steps: 0\n",
                  gpus > 0 ? "gpu" : "cpu", job.workers, job.devices),
      "/nowhere/fuzzed.yaml");
  scenario.topology = std::move(topology);
  run_scenario(scenario);
}

}  // namespace

void run_drawn_scenario(std::string_view bytes) {
  Draws draws(bytes);
  expect_nothing(problem_of_scenario(drawn_scenario(draws)));
}

void run_drawn_collective(std::string_view bytes) {
  Draws draws(bytes);
  expect_nothing(problem_of_collective(drawn_collective(draws)));
}

void run_drawn_sweep(std::string_view bytes) {
  Draws draws(bytes);
  expect_nothing(problem_of_sweep(drawn_sweep(draws)));
}

void run_scenario_text(std::string_view bytes) {
  check_scenario(std::string(bytes));
}

void run_topology_text(std::string_view bytes) {
  Topology topology = is_own_topology(bytes) ? parse_topology_yaml(bytes, "/nowhere/fuzzed.yaml")
                                             : import_text(bytes, "fuzzed", with_a_gpu()).topology;
  if (is_small(topology)) check_machines(std::make_shared<const Topology>(std::move(topology)));
}

void run_trace_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  check_scenario(
      fmt::format("schema_version: 1\nname: fuzzed\nworkload: {{kind: trace, files: ['{}']}}\n"
                  "engine: {{name: sim}}\ntopology: hgx-h100\ndevices: {{type: gpu, per_worker: 8}}\n"
                  "steps: 1\nwarmup_steps: 0\n",
                  file.path().string()));
}

}  // namespace tandem::fuzz
