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

Scenario bert_large(int gpus, int batch) {
  return parse_scenario(fmt::format(R"(
schema_version: 1
name: bert-large
workload: {{kind: layers, model: bert_large, batch: {}, dtype: bf16, bucket_bytes: 25MB, overlap: true}}
strategy: {{name: multi_worker_mirrored}}
engine: {{name: sim}}
topology: {{cluster: {{node: hgx-h100, workers: {}}}}}
devices: {{type: gpu, workers: {}, per_worker: 8}}
steps: {}
warmup_steps: 1
)",
                                    batch, gpus / kGpusPerMachine, gpus / kGpusPerMachine, kSteps),
                        "sim_step_benchmark.yaml");
}

void run_steps(benchmark::State& state, const Scenario& scenario) {
  double ops = 0;
  for (auto _ : state) {
    const RunResult result = run_scenario(scenario);
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

BENCHMARK(equal_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(uneven_replicas)->Arg(8)->Arg(64)->Arg(512)->Arg(1024)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace tandem
