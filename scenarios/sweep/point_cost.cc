#include "scenarios/sweep/point_cost.h"

#include <algorithm>
#include <variant>

#include "engine/engine_info.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/estimates/run_size.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/job/job.h"
#include "scenarios/run/steady_state.h"

namespace tandem {
namespace {

// CPU time (tandem_sim_benchmarks) and resident memory of `tandem run`, 2026-11-25: an op of a simulation, and what a
// run of one op takes; products of matrices on a core of this machine reach some 20 Gflop/s.
constexpr double kSecondsOfAnOp = 1.5e-6;
constexpr double kSecondsOfARun = 0.02;
constexpr double kFlopsPerS = 20e9;
constexpr double kBytesOfARun = 100e6;

constexpr double kOpsOfALayer = 7;        // forward, backward, update, with element-wise work
constexpr double kFlopsOfAParameter = 6;  // likewise, for each example
constexpr double kBytesOfAParameter = 8;  // with its gradient
constexpr double kRecordsOfAnOp = 1.2;    // with collectives and copies

double ops_of_a_step(const Job& job) {
  const Scenario& scenario = job.scenario;
  if (const LayersSettings* layers = job.layers) {
    const auto count = static_cast<double>(layers->model.layers.size());
    const auto fewer = fewer_passes(job);
    const int passes =
        fewer ? fewer->passes : layers->gradient_accumulation_steps * std::max(1, scenario.strategy.mesh.micro_batches);
    return kOpsOfALayer * count * passes / std::max(1, scenario.strategy.mesh.pipeline);
  }
  if (const auto* mlp = std::get_if<MlpSettings>(&scenario.workload.kind)) {
    return kOpsOfALayer * static_cast<double>(mlp->hidden.size() + 1);
  }
  if (const auto* trace = std::get_if<TraceSettings>(&scenario.workload.kind)) {
    std::size_t ops = 0;
    for (const RankTrace& rank : *trace->ranks) ops = std::max(ops, rank.ops.size());
    return static_cast<double>(ops);
  }
  return 1;
}

bool fits(const Job& job) {
  try {
    check_memory(job, memory_need(job));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::optional<PointEstimate> estimate_of(const Scenario& scenario) {
  const Job job = job_of(scenario);
  if (job.models_machine && !fits(job)) return std::nullopt;
  const bool has_values = !job.models_machine || scenario.engine.values == ValueMode::real;
  const double ops = ops_of_a_step(job);
  const bool has_symmetry = !has_values && scenario.engine.symmetry;
  const RunSize size = size_of(job, kRecordsOfAnOp * ops, {.workers = has_symmetry, .devices = has_symmetry});
  const double examples = double{1} * scenario.workload.batch * scenario.steps;
  const double flops =
      has_values ? kFlopsOfAParameter * tensor_bytes_of_device(job) / kBytesOfAParameter * examples : 0;
  const double ops_in_all = static_cast<double>(size.simulated) * scenario.steps * ops;
  return PointEstimate{.cpu_s = kSecondsOfARun + kSecondsOfAnOp * ops_in_all + flops / kFlopsPerS,
                       .memory_bytes = kBytesOfARun + size.bytes()};
}

}  // namespace tandem
