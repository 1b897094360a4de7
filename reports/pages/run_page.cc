#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/units.h"

namespace tandem::pages {
namespace {

// Shows the communication on the critical path beside what is exposed, which need not be on it.
std::string critical_text(const StepPicture& picture, Nanoseconds exposed_communication) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, Nanoseconds time) {
    if (time <= 0 || picture.length <= 0) return;
    const bool is_communication = name == name_of(Category::communication);
    parts.push_back(fmt::format("{} {} ({}{})", name, time_text(time), share_of(time, picture.length),
                                is_communication ? "; exposed " + time_text(exposed_communication) : ""));
  };
  for (const auto& [category, time] : picture.critical) add(name_of(category), time);
  add("idle", picture.critical_idle);
  return fmt::format("The critical path of step {}: {}.", picture.step, fmt::join(parts, ", "));
}

std::string waiting_section(const RunDetails& details) {
  if (details.waits.empty()) return "";
  HeatMap map{.rows = {}, .columns = {}, .values = {}, .unit = Unit::nanoseconds, .column_name = "step"};
  for (const int step : details.steps) map.columns.push_back(std::to_string(step));
  HtmlTable table("waiting for the last rank, and transfer, over the steps shown",
                  {"device", "calls", "arrived last in", "waited", "transferred"});
  const DeviceWaits* latest = &details.waits.front();
  double waited_by_all = 0;
  for (const DeviceWaits& one : details.waits) {
    map.rows.push_back(one.device);
    std::vector<double> row(one.waited_by_step.begin(), one.waited_by_step.end());
    double waited = 0;
    for (const double time : row) waited += time;
    waited_by_all += waited;
    map.values.push_back(std::move(row));
    table.add({one.device, std::to_string(one.calls), std::to_string(one.last_arrivals), time_text(waited),
               time_text(one.transferred)});
    if (one.last_arrivals > latest->last_arrivals) latest = &one;
  }
  if (waited_by_all == 0) return section("Who waited for whom", paragraph("All ranks arrived together."));
  std::string text;
  if (latest->last_arrivals > 0) {
    text = fmt::format("{} made the others wait most often: in {} of its {} calls.", latest->device,
                       latest->last_arrivals, latest->calls);
  }
  if (details.waits_left_out > 0) text += fmt::format(" {} more devices are not shown.", details.waits_left_out);
  return section("Who waited for whom", paragraph(text) +
                                            heat_map("Waiting for the last rank, by device and step", map) +
                                            folded("As a table", std::move(table).finish()));
}

std::string links_section(const RunDetails& details) {
  const LinkPicture& picture = details.links;
  if (picture.links.empty()) return "";
  HtmlTable table("the most used links", {"from", "to", "kind", "carried", "bandwidth", "used"}, 3);
  for (const LinkUse& link : picture.links) {
    table.add({link.from, link.to, link.kind, format_quantity(link.bytes, Dimension::bytes),
               value_text(link.bytes_per_s, Unit::bytes_per_second), percent_text(picture.use_of(link))});
  }
  const LinkUse& hot = picture.links.front();
  std::string text = fmt::format("The most used link, from {} to {}, carried {} of what it can in the time of the run.",
                                 hot.from, hot.to, percent_text(picture.use_of(hot)));
  if (picture.links_left_out > 0) text += fmt::format(" {} less used ones are not shown.", picture.links_left_out);
  return section("Links", paragraph(text) + link_map("Use of the links of the topology", picture) +
                              folded("As a table", std::move(table).finish()));
}

// The parts of a device's memory one upon the other, those that stay the same first.
std::string memory_section(const RunDetails& details) {
  if (!details.memory || details.memory->points.empty()) return "";
  const MemoryCurve& curve = *details.memory;
  XyChart chart{.x = {.name = "time in the step", .unit = Unit::nanoseconds},
                .y = {.name = "bytes", .unit = Unit::bytes},
                .series = {},
                .shaded_name = {}};
  const auto end = static_cast<double>(curve.length);
  std::int64_t below = 0;
  for (const MemoryPart& part : memory_parts()) {
    const bool changes = part.bytes == &MemoryNeed::activations || part.bytes == &MemoryNeed::workspace;
    if (changes || curve.need.*part.bytes == 0) continue;
    below += curve.need.*part.bytes;
    chart.series.push_back({.name = chart.series.empty() ? part.name : fmt::format("+ {}", part.name),
                            .points = {{0, static_cast<double>(below)}, {end, static_cast<double>(below)}}});
  }
  Series activations{.name = "+ activations", .points = {}, .mark = Series::Mark::stairs};
  Series all{.name = "+ workspace", .points = {}, .mark = Series::Mark::stairs};
  const MemoryPoint* peak = &curve.points.front();
  for (const MemoryPoint& point : curve.points) {
    const auto at = static_cast<double>(point.at);
    activations.points.emplace_back(at, static_cast<double>(below + point.activations));
    all.points.emplace_back(at, static_cast<double>(curve.total_at(point)));
    if (curve.total_at(point) > curve.total_at(*peak)) peak = &point;
  }
  chart.labels = {{static_cast<double>(peak->at), static_cast<double>(curve.total_at(*peak)), "most"}};
  chart.series.push_back(std::move(activations));
  chart.series.push_back(std::move(all));
  if (curve.need.available > 0) {
    const auto available = static_cast<double>(curve.need.available);
    chart.series.push_back({.name = "available", .points = {{0, available}}, .mark = Series::Mark::dashes});
  }
  chart.y.hold(0);
  HtmlTable table("what the device holds at the peak", {"part", "bytes", "of the peak"});
  for (const MemoryPart& part : memory_parts()) {
    if (curve.need.*part.bytes == 0) continue;
    table.add({part.name, memory_size_text(curve.need.*part.bytes),
               percent_text(static_cast<double>(curve.need.*part.bytes) / static_cast<double>(curve.need.total()))});
  }
  const std::string text =
      fmt::format("{} holds most in {}, {} after the start of step {}: {}.", curve.device, curve.need.moment,
                  time_text(peak->at), curve.step, memory_size_text(curve.need.total()));
  return section("Memory of a device", paragraph(text) + xy_chart("Memory in the course of a step", std::move(chart)) +
                                           folded("As a table", std::move(table).finish()));
}

// Returns the losses of evenly chosen steps and of the last one.
std::string loss_table(const Report& report) {
  constexpr std::size_t kMostSteps = 200;
  const std::size_t every = (report.loss.size() + kMostSteps - 1) / kMostSteps;
  HtmlTable table(every > 1 ? fmt::format("loss, one of {} steps", every) : "loss", {"step", "loss"});
  for (std::size_t step = 0; step < report.loss.size(); ++step) {
    if (step % every != 0 && step + 1 != report.loss.size()) continue;
    table.add({std::to_string(step), fmt::format("{:.6g}", report.loss[step])});
  }
  return std::move(table).finish();
}

std::string assumptions_section(const Report& report) {
  if (report.assumptions.empty()) return "";
  HtmlTable table("assumed figures, and what a step takes with others",
                  {"figure", "assumed", "from", "to", "a step", ""});
  for (const Assumption& one : report.assumptions) {
    table.add({one.figure, one.value, one.from, one.to, time_text(one.step_from), time_text(one.step_to)});
  }
  return section("What moves it most", std::move(table).finish());
}

std::string loss_section(const Report& report) {
  if (report.loss.empty()) return "";
  Series series{.name = "loss", .points = {}};
  for (std::size_t step = 0; step < report.loss.size(); ++step) {
    series.points.emplace_back(static_cast<double>(step), report.loss[step]);
  }
  XyChart chart{.x = {.name = "step"}, .y = {.name = "loss"}, .series = {std::move(series)}, .shaded_name = {}};
  return section("Loss", xy_chart("Loss by step", std::move(chart)) + folded("As a table", loss_table(report)));
}

// Says of a measured run whether it was disturbed and, if something is expected of it, whether it is normal.
void set_normality(Heading& heading, const Report& report) {
  if (report.is_disturbed()) {
    heading.verdict = "disturbed: " + lost_text(*report.machine_use);
    heading.verdict_class = "bad";
  } else if (report.expectation) {
    const std::optional<bool> is_normal = report.expectation->is_normal(report.summary.step_time.mean);
    const std::string gap = error_text(report.expectation->gap_of(report.summary.step_time.mean));
    heading.verdict = (!is_normal   ? ""
                       : *is_normal ? "normal: "
                                    : "not normal: ") +
                      gap + " from what the model expects";
    heading.verdict_class = is_normal.value_or(false) ? "good" : "open";
  }
}

}  // namespace

std::string gantt_section(const std::optional<RunDetails>& details, Nanoseconds exposed_communication) {
  if (!details) {
    return section("The median step",
                   paragraph("The records of the steps are not in this document; a page that the run itself writes "
                             "(--html), or one of the document of --json --details, shows them."));
  }
  const StepPicture& picture = details->median_step;
  std::string text = paragraph(critical_text(picture, exposed_communication));
  if (picture.lanes_left_out > 0)
    text += paragraph(fmt::format("{} more lanes are not shown.", picture.lanes_left_out));
  return section("The median step",
                 text + gantt("Timeline of the median step", picture, picture.length) + gantt_tables(picture));
}

std::optional<RunDetails> details_of(const JsonField& report) {
  const JsonField details = report.optional("details");
  return details.present() ? std::optional(run_details_from_json(details)) : std::nullopt;
}

Content run_content(const Json& document, const JsonOrigin& origin) {
  const Report report = report_from_document(document, origin);
  Reading reading(document, origin);
  const std::optional<RunDetails> details = details_of(reading.root());
  reading.finish();
  Content content{.heading = {.title = title_of(report), .origin = origin_text(report)}, .sections = {}};
  set_normality(content.heading, report);
  content.sections = {report.faults.empty() ? "" : paragraph("With faults:") + bullets(report.faults),
                      course_section(report),
                      headline_list(report),
                      step_section(report),
                      gantt_section(details, report.summary.per_step.exposed_communication),
                      details ? waiting_section(*details) : "",
                      collectives_section(report, details ? details->bounds : std::vector<CollectiveBound>()),
                      details ? memory_section(*details) : "",
                      details ? links_section(*details) : "",
                      evaluations_section(report),
                      loss_section(report),
                      assumptions_section(report),
                      notes_section(report)};
  return content;
}

}  // namespace tandem::pages
