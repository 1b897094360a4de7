#include "scenarios/run/steady_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "reports/run/continued.h"
#include "reports/timeline/period.h"

namespace tandem {
namespace {

// How many periods a step needs beside those that fill the pipeline, by trial: two that are compared, and those in
// which times settle and the last passes begin. Rounds of interleaved stages fill it in two.
constexpr int kPeriodsCompared = 2, kPeriodsBeside = 2;
constexpr int kPeriodsToSee = kPeriodsCompared + kPeriodsBeside;
constexpr int kRoundsToFill = 2;

bool is_pipelined(const Job& job) {
  return job.mesh && job.mesh->micro_batches > 1;
}

int passes_of(const Job& job) {
  return is_pipelined(job) ? job.mesh->micro_batches : job.layers->gradient_accumulation_steps;
}

// How many micro-batches make a period, and how many periods fill the pipeline.
struct Rhythm {
  int period = 1, filling = 1;
};

Rhythm rhythm_of(const ParallelOptions& mesh) {
  if (mesh.ends_meet()) return {.period = mesh.ways(), .filling = 2 * mesh.pipeline / mesh.ways()};
  if (mesh.virtual_stages > 1) return {.period = mesh.pipeline, .filling = kRoundsToFill};
  return {.filling = mesh.order == PipelineOrder::zero_bubble_h2 ? 2 * mesh.pipeline : mesh.pipeline};
}

// Whether what the job does is decided by times and sizes alone, and whether its passes are equal. A strategy that a
// program registers may do something else in every fourth of them.
bool can_repeat(const Job& job) {
  const Scenario& scenario = job.scenario;
  if (!job.models_machine || job.layers == nullptr || job.layers->learning || job.servers > 0) return false;
  if (job.strategy.is_registered || scenario.evaluation) return false;
  if (scenario.engine.values == ValueMode::real || scenario.workload.spread) return false;
  if (scenario.engine.records != RecordLevel::all || !scenario.engine.steady_state) return false;
  const std::int64_t replicas = job.mesh ? job.mesh->data : job.devices;
  return scenario.workload.batch % (replicas * passes_of(job)) == 0;
}

}  // namespace

std::optional<FewerPasses> fewer_passes(const Job& job, int least, int multiple) {
  if (!can_repeat(job)) return std::nullopt;
  const auto [period, filling] = job.mesh ? rhythm_of(*job.mesh) : Rhythm{};
  const int fill = std::max(filling, (least + period - 1) / period);
  const int all = passes_of(job), some = (fill + kPeriodsToSee) * period;
  const int passes = some + std::max(0, (all - some) / period % multiple) * period;
  if (period == 1 ? 4 * passes > 3 * all : 2 * passes > all) return std::nullopt;
  FewerPasses fewer{.scenario = job.scenario,
                    .passes = passes,
                    .of = all,
                    .period = period,
                    .most = (passes / period - filling - kPeriodsBeside) / kPeriodsCompared};
  fewer.scenario.workload.batch = job.scenario.workload.batch / all * passes;
  if (is_pipelined(job)) {
    fewer.scenario.strategy.mesh.micro_batches = passes;
  } else {
    std::get<LayersSettings>(fewer.scenario.workload.kind).gradient_accumulation_steps = passes;
  }
  return fewer;
}

std::optional<SeenPeriod> seen_period(const Summary& simulated, const Timeline& timeline, FewerPasses& fewer,
                                      Figures figures) {
  const auto shorter = without_a_period(timeline, fewer.passes, fewer.period, fewer.most);
  if (!shorter) return std::nullopt;
  SeenPeriod seen{.periods = shorter->period / fewer.period, .summary = {}};
  if ((fewer.of - fewer.passes) % shorter->period != 0) return seen;
  fewer.period = shorter->period;
  seen.summary = continued(
      simulated, summarize(shorter->timeline, fewer.scenario.warmup_steps, Pace::in_step, RecordLevel::all, figures),
      fewer.periods_left_out());
  return seen;
}

std::string note_of(const FewerPasses& fewer, const Job& job) {
  return fmt::format(
      "{0}: {1} of the {2} of a step are simulated; a period of {3} repeats on every device, to the nanosecond, and is "
      "continued for the others (engine: {{steady_state: off}} simulates all)",
      is_pipelined(job) ? "micro-batches" : "passes over which gradients are accumulated", fewer.passes, fewer.of,
      fewer.period);
}

}  // namespace tandem
