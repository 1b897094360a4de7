#include "scenarios/run/assumptions.h"

#include <algorithm>
#include <cmath>

#include "scenarios/run/runner.h"

namespace tandem {
namespace {

Nanoseconds step_on(const Scenario& scenario, std::shared_ptr<const Topology> topology) {
  Scenario other = scenario;
  other.topology = std::move(topology);
  other.expect = {};
  other.engine.values = ValueMode::none;  // which times do not depend on
  const RunOptions options{.measures_scaling = false,
                           .is_quick = true,
                           .figures = Figures::of_steps,
                           .only_report = true,
                           .has_all_memory = true};
  return run_scenario(other, options).report.summary.step_time.mean;
}

constexpr std::size_t kMostCheapRecords = 200'000;  // of a run that takes about a second
constexpr double kLeastEffect = 0.001;              // what moves a step by less is not shown

double effect_on(Nanoseconds step, const Assumption& one) {
  return static_cast<double>(std::max(std::abs(one.step_from - step), std::abs(one.step_to - step))) /
         static_cast<double>(step);
}

}  // namespace

bool has_cheap_assumptions(const Scenario& scenario, const RunResult& result) {
  return result.report.deterministic && scenario.faults == nullptr &&
         result.timeline.records.size() <= kMostCheapRecords;
}

std::vector<Assumption> assumptions_of(const Scenario& scenario, const RunResult& result, FigureRanges ranges) {
  if (!result.report.deterministic || result.topology == nullptr) return {};
  const Topology& topology = *result.topology;
  const std::vector<AssumedFigure> figures = assumed_figures(topology, result.timeline.consulted, ranges);
  if (figures.empty()) return {};
  const Nanoseconds step = result.report.summary.step_time.mean, quick = step_on(scenario, result.topology);
  if (step <= 0 || quick <= 0) return {};
  // Quick simulations may differ a little from whole ones; what counts is by how much a figure changes them.
  const auto step_with = [&](const AssumedFigure& one, double value) {
    const Nanoseconds changed = step_on(scenario, with_figure(topology, one, value));
    return static_cast<Nanoseconds>(
        std::llround(static_cast<double>(step) * static_cast<double>(changed) / static_cast<double>(quick)));
  };
  std::vector<Assumption> all;
  for (const AssumedFigure& one : figures) {
    Assumption assumption{.figure = one.what,
                          .value = one.value,
                          .source = one.figure.source,
                          .from = one.from,
                          .to = one.to,
                          .step_from = step_with(one, one.least),
                          .step_to = step_with(one, one.most)};
    if (effect_on(step, assumption) > kLeastEffect) all.push_back(std::move(assumption));
  }
  std::ranges::stable_sort(all, std::greater(), [step](const Assumption& one) { return effect_on(step, one); });
  all.resize(std::min(all.size(), kShownAssumptions));
  return all;
}

}  // namespace tandem
