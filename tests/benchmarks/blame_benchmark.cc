// What `tandem blame` costs after its files are read: a job of 16 workers and 44 steps of 32 micro-batches, as
// published ones have.
//
// Counters: recorded ops, and steps.
#include <benchmark/benchmark.h>

#include "reports/blame/blame.h"
#include "tests/benchmarks/exact_counters.h"
#include "tests/reports/made_pipeline.h"

namespace tandem {
namespace {

std::vector<PipelineOp> recorded_ops() {
  constexpr int kSteps = 44;
  MadePipeline made{.replicas = 4, .stages = 4, .micro_batches = 32};
  made.pass_s = [](const MadePass& pass) { return (pass.is_forward ? 1.0 : 2.0) * (pass.replica == 1 ? 2 : 1); };
  std::vector<PipelineOp> ops;
  for (int step = 0; step < kSteps; ++step) {
    made.step = step;
    const MadeStep one(made);
    ops.insert(ops.end(), one.ops().begin(), one.ops().end());
  }
  return ops;
}

void blame_of_pipeline(benchmark::State& state) {
  const std::vector<PipelineOp> ops = recorded_ops();
  Blame found;
  for (auto _ : state) found = blame(pipeline_job(ops, "job.csv", {}));
  set_exact(state, "ops", static_cast<double>(found.ops));
  set_exact(state, "steps", static_cast<double>(found.steps.size()));
}

BENCHMARK(blame_of_pipeline)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
