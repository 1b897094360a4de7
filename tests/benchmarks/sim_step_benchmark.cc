// What a simulated training step costs: a run from its scenario to its report, of BERT-large in data parallel over HGX
// H100 machines.
//
// Time: CPU time of the whole run. Counters: the part of a step and of an op in it, the ops of a step, and peak_rss_mb
// of the process so far (run one benchmark alone, --benchmark_filter=..., to attribute it).
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "scenarios/runner.h"

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

void run_steps(benchmark::State& state, const Scenario& scenario, bool symmetry = false) {
  double ops = 0;
  RunOptions options;
  options.symmetry = symmetry;
  for (auto _ : state) {
    const RunResult result = run_scenario(scenario, options);
    ops = static_cast<double>(std::count_if(result.timeline.records.begin(), result.timeline.records.end(),
                                            [](const Record& record) { return record.kind == RecordKind::op; }));
  }
  const auto per = [&](double count) {
    return benchmark::Counter(count * static_cast<double>(state.iterations()),
                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["per_step"] = per(kSteps);
  state.counters["per_op"] = per(ops);
  state.counters["ops_of_a_step"] = ops / kSteps;
  state.counters["peak_rss_mb"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

// One worker is simulated for all.
void alike_replicas(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  run_steps(state, bert_large(gpus, 32 * gpus), true);
}

// The same on a three-level fat tree with rails.
void alike_replicas_on_a_fat_tree(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const char* tree = "{kind: fat_tree, workers_per_leaf: 32, leaves_per_pod: 16, spines: 4, rails: true}";
  run_steps(state, bert_large(gpus, 32 * gpus, tree), true);
}

// All GPUs do the same at the same time.
void equal_replicas(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  run_steps(state, bert_large(gpus, 32 * gpus));
}

// Half of the GPUs have one example more than the others.
void uneven_replicas(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  run_steps(state, bert_large(gpus, 32 * gpus + gpus / 2));
}

BENCHMARK(alike_replicas)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512)
    ->Arg(1024)
    ->Arg(4096)
    ->Arg(16384)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK(alike_replicas_on_a_fat_tree)->Arg(1024)->Arg(16384)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(equal_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(uneven_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace tandem
