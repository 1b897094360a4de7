// What a simulated training step costs: a run from its scenario to its report, of BERT-large in data parallel over HGX
// H100 machines, unless it says otherwise. tests/benchmarks/growth.py runs these and prints tables.
//
// Time: CPU time of the whole run. Counters: the part of a step and of an op in it, peak_rss_mb of the process so far
// (run one benchmark alone, --benchmark_filter=..., to attribute it), and what was simulated.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "scenarios/run/runner.h"
#include "tests/benchmarks/exact_counters.h"

namespace tandem {
namespace {

constexpr int kGpusPerMachine = 8;
constexpr int kSteps = 4;  // one of them warm-up

Scenario bert_large(int gpus, int batch, const char* fabric = "switch") {
  return parse_scenario(fmt::format(R"(
schema_version: 1
name: bert-large
workload: {{kind: layers, model: bert_large, batch: {}, dtype: bf16, bucket_bytes: 25MB, overlap: true}}
strategy: {{name: multi_worker_mirrored}}
engine: {{name: sim}}
topology: {{cluster: {{node: hgx-h100, workers: {}, fabric: {}}}}}
devices: {{type: gpu, workers: {}, per_worker: 8}}
steps: {}
warmup_steps: 1
)",
                                    batch, gpus / kGpusPerMachine, fabric, gpus / kGpusPerMachine, kSteps),
                        "sim_step_benchmark.yaml");
}

// `make` returns the scenario. Reading it, with its topology, counts.
template <typename Make>
void run_steps(benchmark::State& state, Make&& make, bool symmetry = false, const RunOptions& options = {}) {
  Timeline timeline;
  int steps = 1;
  for (auto _ : state) {
    Scenario scenario = make();
    scenario.engine.symmetry = scenario.engine.symmetry && symmetry;
    steps = scenario.steps;
    timeline = std::move(run_scenario(scenario, options).timeline);
  }
  const auto ops =
      static_cast<double>(std::count_if(timeline.records.begin(), timeline.records.end(),
                                        [](const Record& record) { return record.kind == RecordKind::op; }));
  const auto per = [&](double count) {
    return benchmark::Counter(count * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["per_step"] = per(steps);
  state.counters["per_op"] = per(ops);
  state.counters["peak_rss_mb"] = static_cast<double>(usage.ru_maxrss) / 1024;
  set_exact(state, "steps", steps);
  count_simulation(state, timeline);
}

// Three levels, with rails: 32 machines a leaf, 16 groups of leaves a pod.
constexpr const char* kFatTree = "{kind: fat_tree, workers_per_leaf: 32, leaves_per_pod: 16, spines: 4, rails: true}";

int count_of(const benchmark::State& state) {
  return static_cast<int>(state.range(0));
}

// One worker is simulated for all.
void alike_replicas(benchmark::State& state) {
  const int gpus = count_of(state);
  run_steps(
      state, [=] { return bert_large(gpus, 32 * gpus); }, true);
}

void alike_replicas_on_a_fat_tree(benchmark::State& state) {
  const int gpus = count_of(state);
  run_steps(
      state, [=] { return bert_large(gpus, 32 * gpus, kFatTree); }, true);
}

// One GPU computes at half the rate, and the cable of one NIC of another machine has half the bandwidth.
std::shared_ptr<const Topology> with_faults(const Topology& topology) {
  auto changed = std::make_shared<Topology>(topology);
  const NodeIndex gpu = topology.find("w3.gpu2").value();
  auto device = std::make_shared<DeviceModel>(*topology.device(gpu));
  device->boost_clock_hz.value /= 2;
  device->memory_bandwidth_bytes_per_s.value /= 2;
  changed->set_device(gpu, std::move(device));
  const NodeIndex nic = topology.find("w5.nic1").value();
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if (link.from != nic && link.to != nic) continue;
    auto model = std::make_shared<LinkModel>(*link.model);
    model->bandwidth_bytes_per_s.value /= 2;
    changed->set_link_model(index, std::move(model));
  }
  return changed;
}

void straggler_and_slow_link(benchmark::State& state) {
  const int gpus = count_of(state);
  const auto make = [&] {
    Scenario scenario = bert_large(gpus, 32 * gpus, kFatTree);
    scenario.topology = with_faults(*scenario.topology);
    return scenario;
  };
  run_steps(state, make, true);
}

// GPT-3 of 175 billion parameters, tensor 8 x pipeline 16 x data 96 on 12,288 GPUs, interleaved (virtual_stages) or
// not. On one switch, where the replicas of a stage are alike: the hashed paths of a fat tree tell them all apart.
Scenario gpt_3(std::int64_t virtual_stages) {
  return parse_scenario(fmt::format(R"(
schema_version: 1
name: gpt-3
workload:
  kind: layers
  model: gpt
  sizes: {{hidden: 12288, heads: 96, layers: 96}}
  batch: 1536
  dtype: bf16
  optimizer: adam
  activation_checkpointing: true
strategy: {{name: mesh, data: 96, tensor: 8, pipeline: 16, micro_batches: 16, virtual_stages: {}}}
engine: {{name: sim}}
topology: {{cluster: {{node: hgx-h100, workers: 1536, fabric: switch}}}}
devices: {{type: gpu, per_worker: 8}}
steps: 1
)",
                                    virtual_stages),
                        "sim_step_benchmark.yaml");
}

void gpt3_on_a_mesh(benchmark::State& state) {
  run_steps(
      state, [&] { return gpt_3(state.range(0)); }, true);
}

// One device of a tensor-parallel group works for all, and repeating micro-batches are left out.
void gpt3_only_reported(benchmark::State& state) {
  run_steps(state, [&] { return gpt_3(state.range(0)); }, true, {.only_report = true});
}

// Every worker on its own, with 32 servers on machines of their own.
void asynchronous_servers(benchmark::State& state) {
  const int workers = count_of(state);
  const auto make = [=] {
    return parse_scenario(fmt::format(R"(
schema_version: 1
name: asynchronous
workload: {{kind: layers, model: resnet50, batch: {}, dtype: f32}}
strategy: {{name: parameter_server}}
engine: {{name: sim}}
topology: {{cluster: {{node: hgx-h100, workers: {}, fabric: switch}}}}
devices: {{type: gpu, workers: {}, per_worker: 1, ps: 32}}
steps: 10
)",
                                      32 * workers, workers + 32, workers),
                          "sim_step_benchmark.yaml");
  };
  run_steps(state, make);
}

// Handwritten digits, two GPUs a worker, two servers: the workers take their shares of global batches in steps of their
// own. per_worker does not grow with their number.
void asynchronous_digits(benchmark::State& state) {
  const int workers = count_of(state);
  const auto make = [=] {
    return parse_scenario(fmt::format(R"(
schema_version: 1
name: asynchronous-digits
workload: {{kind: mlp, data: digits, hidden: [512, 512], batch: {}, learning_rate: 0.1}}
strategy: {{name: parameter_server}}
engine: {{name: sim, values: none}}
topology: {{cluster: {{node: dgx-a100, workers: {}}}}}
devices: {{type: gpu, workers: {}, per_worker: 2, ps: 2}}
steps: 3
)",
                                      64 * workers, workers + 2, workers),
                          "sim_step_benchmark.yaml");
  };
  run_steps(state, make);
  state.counters["per_worker"] = benchmark::Counter(workers * static_cast<double>(state.iterations()),
                                                    benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// A GPT of so many layers on 1,024 GPUs, whose memory 192 of them fill only with checkpoints of activations.
void layers_of_a_model(benchmark::State& state) {
  const auto make = [&] {
    return parse_scenario(fmt::format(R"(
schema_version: 1
name: layers
workload: {{kind: layers, model: gpt, sizes: {{layers: {}}}, batch: 1024, dtype: bf16, bucket_bytes: 25MB, overlap: true,
  activation_checkpointing: true}}
strategy: {{name: multi_worker_mirrored}}
engine: {{name: sim}}
topology: {{cluster: {{node: hgx-h100, workers: 128, fabric: {}}}}}
devices: {{type: gpu, per_worker: 8}}
steps: {}
warmup_steps: 1
)",
                                      state.range(0), kFatTree, kSteps),
                          "sim_step_benchmark.yaml");
  };
  run_steps(state, make, true);
}

// All GPUs do the same at the same time.
void equal_replicas(benchmark::State& state) {
  const int gpus = count_of(state);
  run_steps(state, [=] { return bert_large(gpus, 32 * gpus); });
}

// Half of the GPUs have one example more than the others.
void uneven_replicas(benchmark::State& state) {
  const int gpus = count_of(state);
  run_steps(state, [=] { return bert_large(gpus, 32 * gpus + gpus / 2); });
}

void many_sizes(benchmark::internal::Benchmark* one) {
  for (const int gpus : {8, 64, 512, 1024, 4096, 16384}) one->Arg(gpus);
}

BENCHMARK(alike_replicas)->Apply(many_sizes)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(alike_replicas_on_a_fat_tree)
    ->Apply(many_sizes)
    ->Arg(32768)
    ->Arg(262144)
    ->Arg(1048576)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK(straggler_and_slow_link)->Arg(16384)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(gpt3_on_a_mesh)->Arg(1)->Arg(2)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(gpt3_only_reported)->Arg(1)->Arg(2)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(asynchronous_servers)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(asynchronous_digits)->RangeMultiplier(2)->Range(64, 1024)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(layers_of_a_model)->Arg(12)->Arg(24)->Arg(48)->Arg(96)->Arg(192)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(equal_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(uneven_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace tandem
