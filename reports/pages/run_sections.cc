// The sections of a page about one run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/explanation_text.h"
#include "reports/run/report_text.h"
#include "topologies/base/units.h"

namespace tandem::pages {
namespace {

Bar bar_of(std::string label, const PerStep& step) {
  Bar bar{.label = std::move(label), .parts = {}};
  for (const StepPart& part : step_parts()) {
    bar.parts.push_back(part_of_step(part, static_cast<double>(step.*part.time)));
  }
  return bar;
}

Bar hidden_bar(const PerStep& step) {
  const auto hidden = [](Nanoseconds whole, Nanoseconds exposed) { return static_cast<double>(whole - exposed); };
  return {
      .label = "hidden behind it",
      .parts = {{.name = "hidden input", .css_class = "input hidden", .value = hidden(step.input, step.exposed_input)},
                {.name = "hidden communication",
                 .css_class = "communication hidden",
                 .value = hidden(step.communication, step.exposed_communication)}},
      .is_thin = true};
}

std::string worker_name(const Report& report, std::size_t index) {
  if (index >= report.classes.size()) return fmt::format("worker {}", index);
  const ReportedClass& one = report.classes[index];
  return one.workers > 1 ? fmt::format("{} (x{})", one.representative, one.workers) : one.representative;
}

constexpr std::size_t kMostWorkers = 32;

std::string parts_table(const Report& report) {
  const Nanoseconds step = report.summary.step_time.mean;
  HtmlTable table("where a step goes, per device", {"part", "time", "of the step"});
  for (const StepPart& part : step_parts()) {
    const Nanoseconds time = report.summary.per_step.*part.time;
    table.add({with_blanks(part.name), time_text(time), share_of(time, step)});
  }
  table.add({"input, hidden or exposed", time_text(report.summary.per_step.input),
             share_of(report.summary.per_step.input, step)});
  table.add({"communication, hidden or exposed", time_text(report.summary.per_step.communication),
             share_of(report.summary.per_step.communication, step)});
  return std::move(table).finish();
}

void add_figure(std::string& list, std::string_view name, const std::string& value, const std::string& detail) {
  list += fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", escaped(name), escaped(value),
                      escaped(detail));
}

const CollectiveBound* bound_of(const CollectiveSummary& one, const std::vector<CollectiveBound>& bounds) {
  const auto found = std::find_if(bounds.begin(), bounds.end(), [&](const CollectiveBound& bound) {
    return bound.operation == one.operation && bound.devices == one.devices;
  });
  return found != bounds.end() ? &*found : nullptr;
}

std::string awaited_name(const Report& report, const CollectiveSummary& one) {
  const CallShare* const last = awaited_rank(one);
  return last == nullptr ? "-"
                         : short_device_name(report.summary.ranks.at(static_cast<std::size_t>(last->rank)).device);
}

// The waiting and the transfer of each rank; "" if no rank waits.
std::string ranks_table(const Report& report) {
  HtmlTable table("waiting for the last rank, and transfer, means over the calls",
                  {"operation", "size", "devices", "rank", "waiting", "transfer"});
  bool any = false;
  for (const CollectiveSummary& one : report.summary.collectives) {
    for (const CallShare& share : one.ranks) {
      table.add({one.operation, size_text(one.bytes), std::to_string(one.devices),
                 short_device_name(report.summary.ranks.at(static_cast<std::size_t>(share.rank)).device),
                 time_text(share.waiting), time_text(share.transfer)});
      any = true;
    }
  }
  return any ? folded("By rank", std::move(table).finish()) : "";
}

// Draws a dashed line for each different bound of the collectives, and says what sets it. If bandwidths are far below
// the bounds, the axis is logarithmic.
std::string add_bounds(const std::vector<CollectiveSummary>& collectives, const std::vector<CollectiveBound>& bounds,
                       XyChart& chart) {
  std::map<std::pair<double, std::string>, std::vector<std::string>> limited;  // names by bound and what sets it
  double least_size = 0, least = 0, most = 0;
  for (const CollectiveSummary& one : collectives) {
    if (one.bytes <= 0) continue;  // not on a logarithmic axis
    const auto size = static_cast<double>(one.bytes);
    least_size = least_size == 0 ? size : std::min(least_size, size);
    if (one.busbw > 0) least = least == 0 ? one.busbw : std::min(least, one.busbw);
    const CollectiveBound* bound = bound_of(one, bounds);
    if (bound == nullptr) continue;
    most = std::max(most, bound->bus_bandwidth);
    auto& names = limited[{bound->bus_bandwidth, bound->limited_by}];
    std::string name = fmt::format("{} of {}", one.operation, one.devices);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  constexpr double kFarBelow = 10;
  chart.y.is_logarithmic = least > 0 && most > kFarBelow * least;
  std::string text;
  for (const auto& [bound, names] : limited) {
    const std::string value = value_text(bound.first, Unit::bytes_per_second);
    text += paragraph(fmt::format("At most {} for {}: {}.", value, fmt::join(names, ", "), bound.second));
    chart.series.push_back(
        {.name = fmt::format("bound {}", value), .points = {{least_size, bound.first}}, .mark = Series::Mark::dashes});
  }
  return text;
}

}  // namespace

BarPart part_of_step(const StepPart& part, double value) {
  const std::string color = part.time == &PerStep::exposed_input           ? "input"
                            : part.time == &PerStep::exposed_communication ? "communication"
                                                                           : part.name;
  return {.name = with_blanks(part.name), .css_class = color, .value = value};
}

std::string headline_list(const Report& report) {
  const StepTime& time = report.summary.step_time;
  std::string list = "<dl class=\"figures\">\n";
  const std::string longer = long_steps_text(time);
  add_figure(list, "step time", time_text(time.mean),
             fmt::format("mean of {}; median {}, min {}, p95 {}{}{}", time.samples, time_text(time.median),
                         time_text(time.min), time_text(time.p95), longer.empty() ? "" : "; ", longer));
  add_figure(list, "throughput", rate_text(report.throughput(), report.throughput_unit), units_per_step_text(report));
  for (const ShownRate& rate : shown_rates(report)) add_figure(list, rate.name, rate.value, rate.detail);
  if (const auto& memory = report.memory) {
    add_figure(list, "memory", memory_size_text(memory->total()),
               memory->available > 0 ? fmt::format("needed of {} on a device", memory_size_text(memory->available))
                                     : "needed on a device");
  }
  if (const auto& error = report.expected_error) {
    add_figure(list, "error", band_text(*error), band_basis_text(*error));
  } else if (report.expectation) {
    const std::string term = largest_term_text(report, *report.expectation);
    add_figure(list, "expected", time_text(report.expectation->step_time),
               fmt::format("on {}; {}{}{}", report.expectation->topology, gap_text(report, *report.expectation),
                           term.empty() ? "" : "; ", term));
  }
  if (report.scaling_efficiency && std::isfinite(*report.scaling_efficiency)) {
    add_figure(list, "scaling", percent_text(*report.scaling_efficiency),
               fmt::format("of {} single replicas", report.replicas));
  }
  if (!report.loss.empty() && std::isfinite(report.loss.back())) {
    add_figure(list, "loss", fmt::format("{:.4g}", report.loss.back()),
               fmt::format("from {:.4g}", report.loss.front()));
  }
  for (const auto& [name, value] : report.metrics) {
    if (is_of_program_only(name, report)) continue;
    add_figure(list, with_blanks(std::string(metric_label(name))), metric_value_text(name, value), "");
  }
  return list + "</dl>\n";
}

std::string step_section(const Report& report) {
  if (!report.has_parts()) {
    return section("Where a step goes", paragraph(fmt::format("Not known: the run kept no records of it (records: {}).",
                                                              name_of(report.records))));
  }
  const PerStep& step = report.summary.per_step;
  std::vector<Bar> bars = {bar_of("mean of the devices", step)};
  if (step.input > step.exposed_input || step.communication > step.exposed_communication) {
    bars.push_back(hidden_bar(step));
  }
  const auto& workers = report.summary.workers;
  if (workers.size() > 1) {
    for (std::size_t i = 0; i < std::min(workers.size(), kMostWorkers); ++i) {
      bars.push_back(bar_of(worker_name(report, i), workers[i].per_step));
    }
  }
  std::string text;
  if (workers.size() > kMostWorkers) {
    text += paragraph(fmt::format("{} more workers are in the document only.", workers.size() - kMostWorkers));
  }
  if (const auto& others = report.summary.other_devices) {
    bars.push_back(bar_of(fmt::format("{} (trains no replica)", others->busiest), others->per_step));
  }
  return section("Where a step goes", stacked_bars("Parts of a step", bars, Unit::nanoseconds) + text +
                                          folded("As a table", parts_table(report)));
}

std::string collectives_section(const Report& report, const std::vector<CollectiveBound>& bounds) {
  const auto& collectives = report.summary.collectives;
  if (collectives.empty()) return "";
  std::map<std::string, Series> by_kind;
  HtmlTable table(
      "collectives: waiting for the last rank, mean over the ranks, then transfer until the last rank's end",
      {"operation", "algorithm", "size", "devices", "calls a step", "waiting", "the others wait for", "transfer",
       "algbw", "busbw", "bound"},
      2);
  for (const CollectiveSummary& one : collectives) {
    Series& series = by_kind[fmt::format("{} of {}", one.operation, one.devices)];
    series.points.emplace_back(static_cast<double>(one.bytes), one.busbw);
    series.mark = Series::Mark::dots;
    const CollectiveBound* bound = bound_of(one, bounds);
    table.add({one.operation, one.algorithm, size_text(one.bytes), std::to_string(one.devices),
               std::to_string(one.calls_per_step), time_text(one.waiting_ns), awaited_name(report, one),
               time_text(one.time_ns), value_text(one.algbw, Unit::bytes_per_second),
               value_text(one.busbw, Unit::bytes_per_second),
               bound != nullptr ? value_text(bound->bus_bandwidth, Unit::bytes_per_second) : "-"});
  }
  XyChart chart{.x = {.name = "size", .unit = Unit::bytes, .is_logarithmic = true},
                .y = {.name = "bus bandwidth", .unit = Unit::bytes_per_second},
                .series = {},
                .shaded_name = {}};
  for (auto& [name, series] : by_kind) {
    series.name = name;
    chart.series.push_back(std::move(series));
  }
  const std::string limits = add_bounds(collectives, bounds, chart);
  if (!chart.y.is_logarithmic) chart.y.hold(0);
  return section("Collectives", limits + xy_chart("Bus bandwidth of collectives by size", std::move(chart)) +
                                    folded("As a table", std::move(table).finish()) + ranks_table(report));
}

std::string notes_section(const Report& report) {
  HtmlTable table("what decided the times", {"setting", "value"}, 2);
  for (const auto& [name, value] : report.settings) table.add({name, value});
  std::string notes = bullets(report.notes);
  if (report.machine_use) notes += paragraph(lost_text(*report.machine_use) + ".");
  return section("Settings and notes", notes + folded("Settings", std::move(table).finish()));
}

}  // namespace tandem::pages
