#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/comparison/compare.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"

namespace tandem::pages {
namespace {

std::string error_or_dash(const std::optional<double>& error) {
  return error ? error_text(*error) : "-";
}

// A disturbed measurement tells no error, so none is explained.
std::string waterfall_section(const Comparison& comparison) {
  if (!comparison.figure("step_time").error || !comparison.has_parts()) return "";
  std::vector<WaterfallTerm> terms;
  HtmlTable table("the parts of the step", {"part", "measured", "simulated", "difference"});
  for (const StepPart& part : step_parts()) {
    const ComparedFigure& figure = comparison.figure(part.name);
    const Nanoseconds was = std::llround(figure.measured), is = std::llround(figure.predicted);
    const std::string name = with_blanks(part.name);
    if (was != is) terms.push_back({.name = name, .change = static_cast<double>(is - was)});
    table.add({name, time_text(was), time_text(is), signed_time_text(is - was)});
  }
  return section("What the error is made of", waterfall("From the measured step to the simulated one", "measured",
                                                        comparison.figure("step_time").measured, "simulated", terms,
                                                        comparison.noise, Unit::nanoseconds) +
                                                  folded("As a table", std::move(table).finish()));
}

// Shades the range from the least to the greatest measured time of the collectives on which the prediction is based, as
// far as these are among those compared.
void shade_calibrated(const std::vector<Comparison>& comparisons, XyChart& chart) {
  for (const Comparison& comparison : comparisons) {
    for (const CalibratedRange& range : comparison.predicted.calibrated) {
      const bool is_compared = std::any_of(
          comparison.collectives.begin(), comparison.collectives.end(),
          [&](const auto& one) { return one.operation == range.operation && one.devices == range.devices; });
      if (!is_compared || range.from <= 0) continue;
      const auto from = static_cast<double>(range.from), to = static_cast<double>(range.to);
      chart.shaded_from = chart.shaded_to > 0 ? std::min(chart.shaded_from, from) : from;
      chart.shaded_to = std::max(chart.shaded_to, to);
    }
  }
  if (chart.shaded_to <= 0) return;
  chart.shaded_name = "calibrated";
}

std::string extrapolated_text(const ComparedCollective& one) {
  if (!one.is_extrapolated) return "-";
  return *one.is_extrapolated ? "extrapolated" : "calibrated";
}

// Predicted against measured times of collectives, on equal logarithmic axes. The diagonal is a perfect prediction.
std::string collectives_section_of(const std::vector<Comparison>& comparisons) {
  std::map<std::string, Series> kinds;
  HtmlTable table("collectives", {"operation", "size", "devices", "measured", "simulated", "error", "size is"});
  double low = 0, high = 0;
  for (const Comparison& comparison : comparisons) {
    for (const ComparedCollective& one : comparison.collectives) {
      table.add({one.operation, size_text(one.bytes), std::to_string(one.devices), time_text(one.measured),
                 time_text(one.predicted), error_or_dash(one.error), extrapolated_text(one)});
      if (one.measured <= 0 || one.predicted <= 0) continue;
      const double measured = static_cast<double>(one.measured), predicted = static_cast<double>(one.predicted);
      const bool is_hollow = one.is_extrapolated.value_or(false);
      Series& series = kinds[is_hollow ? one.operation + ", extrapolated" : one.operation];
      series.points.emplace_back(measured, predicted);
      series.is_hollow.push_back(is_hollow);
      series.remarks.push_back(fmt::format("{} on {} devices", size_text(one.bytes), one.devices));
      low = low == 0 ? std::min(measured, predicted) : std::min({low, measured, predicted});
      high = std::max({high, measured, predicted});
    }
  }
  if (kinds.empty()) return "";
  XyChart chart{.x = {.name = "measured", .unit = Unit::nanoseconds, .is_logarithmic = true},
                .y = {.name = "simulated", .unit = Unit::nanoseconds, .is_logarithmic = true},
                .series = {},
                .shaded_name = {}};
  shade_calibrated(comparisons, chart);
  if (chart.shaded_to > 0) {
    low = std::min(low, chart.shaded_from);
    high = std::max(high, chart.shaded_to);
  }
  chart.series.push_back({.name = "equal", .points = {{low, low}, {high, high}}, .mark = Series::Mark::dashes});
  for (auto& [name, series] : kinds) {
    series.name = name;
    series.mark = Series::Mark::dots;
    chart.series.push_back(std::move(series));
  }
  return section("Collectives", xy_chart("Simulated against measured times of collectives", std::move(chart)) +
                                    folded("As a table", std::move(table).finish()));
}

std::string bands_section(const Comparison& comparison) {
  if (comparison.bands.empty()) return "";
  HtmlTable table("absolute errors of collectives by size", {"operation", "from", "count", "median", "p95"});
  for (const ComparedBand& band : comparison.bands) {
    table.add({band.operation, size_text(band.from_bytes), std::to_string(band.count), percent_text(band.median_error),
               percent_text(band.p95_error)});
  }
  return section("Size bands", std::move(table).finish());
}

std::string steps_section_of(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField entry = reading.root().required("comparisons").items().back();
  auto measured = details_of(entry.required("measured"));
  auto predicted = details_of(entry.required("predicted"));
  reading.finish();
  if (!measured || !predicted) return gantt_section(std::nullopt, 0);
  return paired_steps_section(std::move(*measured), std::move(*predicted));
}

std::string variants_section(const std::vector<Comparison>& comparisons) {
  if (comparisons.size() < 2) return "";
  HtmlTable table("the variants", {"replicas", "cross-device ops", "measured", "simulated", "error", "noise"}, 2);
  for (const Comparison& one : comparisons) {
    table.add({std::to_string(one.measured.replicas), one.measured.cross_device_ops,
               time_text(one.figure("step_time").measured), time_text(one.figure("step_time").predicted),
               error_or_dash(one.figure("step_time").error), percent_text(one.noise)});
  }
  return section("Variants", std::move(table).finish());
}

std::string verdict_text(const Comparison& comparison) {
  std::string text = fmt::format("the simulated step is {} from the measured one (noise {})",
                                 error_text(*comparison.figure("step_time").error), percent_text(comparison.noise));
  if (const std::optional<bool> usual = is_usual(comparison)) {
    text += fmt::format(", {} the usual {}", *usual ? "within" : "outside",
                        interval_text(comparison.predicted.expected_error->widest()->of_predicted()));
  }
  if (const auto part = deciding_part(comparison)) {
    text += fmt::format("; {} decides it, {} of the step", part->name, error_text(part->of_step));
  }
  if (comparison.measured.cores && comparison.measured.cores->are_short()) {
    text += "; " + cores_text(*comparison.measured.cores);
  }
  return text;
}

}  // namespace

Content comparison_content(const Json& document, const JsonOrigin& origin) {
  const std::vector<Comparison> comparisons = comparisons_from_json(document, origin);
  // The last one is shown in full, as in the text.
  const Comparison& last = comparisons.back();
  const std::optional<double>& error = last.figure("step_time").error;
  Content content{
      .heading = {.title = title_of(last.measured),
                  .origin = fmt::format("{}; against {}", origin_text(last.measured), origin_text(last.predicted))},
      .sections = {}};
  content.heading.verdict = error ? verdict_text(last) : "disturbed, no error can be told: " + last.disturbance;
  content.heading.verdict_class = error ? "open" : "bad";
  content.sections = {variants_section(comparisons),       waterfall_section(last), steps_section_of(document, origin),
                      collectives_section_of(comparisons), bands_section(last),     notes_section(last.measured)};
  return content;
}

}  // namespace tandem::pages
