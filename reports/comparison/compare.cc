#include "reports/comparison/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/run/report_text.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::optional<double> relative_error(double measured, double predicted) {
  if (!(measured > 0) || !std::isfinite(measured) || !std::isfinite(predicted)) return std::nullopt;
  return predicted / measured - 1;
}

ComparedFigure figure_of(std::string name, double measured, double predicted) {
  return {.name = std::move(name),
          .measured = measured,
          .predicted = predicted,
          .error = relative_error(measured, predicted)};
}

std::vector<ComparedFigure> figures_of(const Report& measured, const Report& predicted) {
  std::vector<ComparedFigure> figures;
  const auto add_time = [&](const char* name, Nanoseconds was, Nanoseconds is) {
    figures.push_back(figure_of(name, static_cast<double>(was), static_cast<double>(is)));
  };
  add_time("step_time", measured.summary.step_time.mean, predicted.summary.step_time.mean);
  if (measured.summary.step_time.is_uneven() || predicted.summary.step_time.is_uneven()) {
    add_time("median_step_time", measured.summary.step_time.median, predicted.summary.step_time.median);
  }
  figures.push_back(figure_of("throughput", measured.throughput(), predicted.throughput()));
  if (measured.evaluations && predicted.evaluations) {
    add_time("evaluation", measured.evaluations->median_time(), predicted.evaluations->median_time());
  }
  const bool have_parts = measured.has_parts() && predicted.has_parts();
  for (const auto& [name, time] : step_figures()) {
    if (!have_parts) {
      figures.push_back({.name = name, .error = {}});
      continue;
    }
    add_time(name, measured.summary.per_step.*time, predicted.summary.per_step.*time);
  }
  return figures;
}

const CollectiveSummary* find_same(const std::vector<CollectiveSummary>& collectives, const CollectiveSummary& wanted) {
  for (const CollectiveSummary& collective : collectives) {
    if (collective.operation == wanted.operation && collective.bytes == wanted.bytes &&
        collective.devices == wanted.devices) {
      return &collective;
    }
  }
  return nullptr;
}

std::optional<bool> is_extrapolated(const Report& predicted, const CollectiveSummary& collective) {
  if (predicted.calibrated.empty()) return std::nullopt;
  return std::none_of(predicted.calibrated.begin(), predicted.calibrated.end(), [&](const CalibratedRange& range) {
    return range.operation == collective.operation && range.devices == collective.devices &&
           range.from_bytes <= collective.bytes && collective.bytes <= range.to_bytes;
  });
}

void compare_collectives(Comparison& comparison) {
  const auto& measured = comparison.measured.summary.collectives;
  const auto& predicted = comparison.predicted.summary.collectives;
  const auto only_in = [&](const char* which, const CollectiveSummary& collective) {
    comparison.notes.push_back(fmt::format("{} of {} bytes between {} devices is in the {} run only",
                                           collective.operation, collective.bytes, collective.devices, which));
  };
  for (const CollectiveSummary& ours : measured) {
    const CollectiveSummary* theirs = find_same(predicted, ours);
    if (!theirs) {
      only_in("measured", ours);
      continue;
    }
    comparison.collectives.push_back(
        {.operation = ours.operation,
         .bytes = ours.bytes,
         .devices = ours.devices,
         .measured = ours.time_ns,
         .predicted = theirs->time_ns,
         .error = relative_error(static_cast<double>(ours.time_ns), static_cast<double>(theirs->time_ns)),
         .is_extrapolated = is_extrapolated(comparison.predicted, *theirs)});
  }
  for (const CollectiveSummary& theirs : predicted) {
    if (!find_same(measured, theirs)) only_in("predicted", theirs);
  }
}

// Sizes at which another cost begins to dominate collectives: latency, protocols, bandwidth.
constexpr std::array<std::int64_t, 5> kBandEdges{0, std::int64_t{1} << 16, std::int64_t{1} << 20, std::int64_t{1} << 26,
                                                 std::int64_t{1} << 62};

std::vector<ComparedBand> bands_of(const std::vector<ComparedCollective>& collectives) {
  std::map<std::pair<std::string, std::size_t>, std::vector<double>> errors;
  for (const ComparedCollective& collective : collectives) {
    if (!collective.error) continue;
    const auto edge = std::upper_bound(kBandEdges.begin(), kBandEdges.end() - 1, collective.bytes);
    errors[{collective.operation, static_cast<std::size_t>(edge - kBandEdges.begin()) - 1}].push_back(
        std::abs(*collective.error));
  }
  std::vector<ComparedBand> bands;
  bands.reserve(errors.size());
  for (const auto& [key, values] : errors) {
    bands.push_back({.operation = key.first,
                     .from_bytes = kBandEdges[key.second],
                     .to_bytes = kBandEdges[key.second + 1],
                     .count = static_cast<int>(values.size()),
                     .median_error = median_of(values),
                     .p95_error = p95_of(values)});
  }
  return bands;
}

std::optional<double> loss_difference(const std::vector<double>& measured, const std::vector<double>& predicted) {
  std::optional<double> largest;
  for (std::size_t i = 0; i < std::min(measured.size(), predicted.size()); ++i) {
    const double difference = std::abs(predicted[i] - measured[i]);
    if (!std::isfinite(difference)) continue;
    const double relative = difference == 0 ? 0 : difference / std::abs(measured[i]);
    if (std::isfinite(relative)) largest = std::max(largest.value_or(0), relative);
  }
  return largest;
}

// Both may be of other steps where an evaluator is faster in one of them.
std::optional<double> evaluated_difference(const Report& measured, const Report& predicted) {
  if (!measured.evaluations || !predicted.evaluations) return std::nullopt;
  std::map<std::int64_t, double> known;
  for (const Evaluated& one : measured.evaluations->done) {
    if (one.loss) known[one.step] = *one.loss;
  }
  std::vector<double> ours, theirs;
  for (const Evaluated& one : predicted.evaluations->done) {
    const auto same = known.find(one.step);
    if (same == known.end() || !one.loss) continue;
    ours.push_back(same->second);
    theirs.push_back(*one.loss);
  }
  return loss_difference(ours, theirs);
}

void note_differences(Comparison& comparison) {
  const auto differ = [&](const char* what, const auto& measured, const auto& predicted) {
    if (measured == predicted) return;
    comparison.notes.push_back(fmt::format("{} differs: measured '{}', predicted '{}'", what, measured, predicted));
  };
  differ("the scenario", comparison.measured.scenario, comparison.predicted.scenario);
  differ("the number of replicas", comparison.measured.replicas, comparison.predicted.replicas);
  differ("the strategy", comparison.measured.strategy, comparison.predicted.strategy);
  differ("cross-device ops", comparison.measured.cross_device_ops, comparison.predicted.cross_device_ops);
  if (!comparison.has_parts()) {
    const Report& without = comparison.measured.has_parts() ? comparison.predicted : comparison.measured;
    comparison.notes.push_back(
        fmt::format("the parts of a step are not compared: the run on engine {} has no records of "
                    "them (records: {})",
                    without.engine, name_of(without.records)));
  }
  differ("the work of a step", comparison.measured.units_per_step, comparison.predicted.units_per_step);
  const auto add_long = [&](const char* which, const Report& report) {
    const std::string steps = long_steps_text(report.summary.step_time);
    if (!steps.empty()) comparison.notes.push_back(fmt::format("{} run: {}", which, steps));
  };
  add_long("measured", comparison.measured);
  add_long("predicted", comparison.predicted);
}

}  // namespace

bool Comparison::has_parts() const {
  return measured.has_parts() && predicted.has_parts();
}

const ComparedFigure& Comparison::figure(std::string_view name) const {
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const ComparedFigure& figure) { return figure.name == name; });
  TANDEM_REQUIRE(found != figures.end(), "a comparison has no figure '" + std::string(name) + "'");
  return *found;
}

std::vector<DecidingPart> part_differences(const Comparison& comparison) {
  std::vector<DecidingPart> parts;
  const double step = comparison.figure("step_time").measured;
  if (comparison.is_disturbed() || !comparison.has_parts() || !(step > 0)) return parts;
  for (const StepPart& part : step_parts()) {
    const ComparedFigure& figure = comparison.figure(part.name);
    parts.push_back({.name = with_blanks(part.name), .of_step = (figure.predicted - figure.measured) / step});
  }
  return parts;
}

std::optional<DecidingPart> deciding_part(const Comparison& comparison) {
  const std::optional<double>& error = comparison.figure("step_time").error;
  const std::vector<DecidingPart> parts = part_differences(comparison);
  if (!error || *error == 0 || parts.empty()) return std::nullopt;
  const double direction = *error < 0 ? -1 : 1;
  const auto farthest =
      std::ranges::max_element(parts, {}, [&](const DecidingPart& part) { return direction * part.of_step; });
  return direction * farthest->of_step > 0 ? std::optional(*farthest) : std::nullopt;
}

std::optional<bool> is_usual(const Comparison& comparison) {
  const std::optional<double>& error = comparison.figure("step_time").error;
  const std::optional<ErrorBand>& band = comparison.predicted.expected_error;
  if (!error || !band || band->widest() == nullptr) return std::nullopt;
  return band->widest()->of_predicted().contains(*error);
}

Comparison compare(const Report& measured, const Report& predicted, const std::string& calibration_disturbance) {
  Comparison comparison;
  comparison.measured = measured;
  comparison.predicted = predicted;
  comparison.figures = figures_of(measured, predicted);
  note_differences(comparison);
  compare_collectives(comparison);
  comparison.calibration_disturbance = comparison.disturbance = calibration_disturbance;
  if (measured.is_disturbed()) {
    if (!comparison.disturbance.empty()) comparison.disturbance += "; ";
    comparison.disturbance += lost_text(*measured.machine_use);
  }
  if (comparison.is_disturbed()) {
    for (ComparedFigure& figure : comparison.figures) figure.error.reset();
    for (ComparedCollective& collective : comparison.collectives) collective.error.reset();
  }
  comparison.bands = bands_of(comparison.collectives);
  comparison.loss_max_relative_difference = loss_difference(measured.loss, predicted.loss);
  comparison.evaluated_loss_max_relative_difference = evaluated_difference(measured, predicted);
  const StepTime& time = measured.summary.step_time;
  if (time.median > 0) {
    comparison.noise = static_cast<double>(time.median_absolute_deviation) / static_cast<double>(time.median);
  }
  return comparison;
}

}  // namespace tandem
