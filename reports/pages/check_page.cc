#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/checks/check.h"
#include "reports/checks/paired_check.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/report_text.h"

namespace tandem::pages {
namespace {

std::string differences_of(const CheckResult& result) {
  if (result.differences.empty()) return "";
  HtmlTable table("what differs from the baseline", {"figure", "baseline", "now", "change"});
  for (const CheckedFigure& figure : result.differences) {
    const auto [then, now] = time_texts(figure.baseline_ns, figure.current_ns);
    table.add({figure.name, then, now, change_text(figure)});
  }
  return section("What differs", std::move(table).finish());
}

// "12.0 %, disturbed"; "-" if the system did not tell.
std::string lost_of_launch(const JsonField& launch) {
  const JsonField lost = launch.optional("lost"), disturbed = launch.optional("disturbed");
  std::string text = lost.present() ? percent_text(lost.number()) : "-";
  if (disturbed.present() && disturbed.boolean()) text += ", disturbed";
  return text;
}

std::string launches_section(const JsonField& root) {
  Series old_ones{.name = "old", .points = {}, .mark = Series::Mark::dots};
  Series new_ones{.name = "new", .points = {}, .is_hollow = {}, .mark = Series::Mark::dots};
  HtmlTable table("launches in their order", {"launch", "program", "version", "step time", "lost"}, 3);
  int number = 0;
  for (const JsonField& item : root.required("launches").items()) {
    ++number;
    const std::string program = item.required("program").text();
    const double time = item.required("step_time_ns").number();
    Series& series = program == "new" ? new_ones : old_ones;
    series.points.emplace_back(number, time);
    if (&series == &new_ones) series.is_hollow.push_back(true);
    table.add({std::to_string(number), program, item.required("tandem_version").text(), time_text(time),
               lost_of_launch(item)});
  }
  XyChart chart{.x = {.name = "launch"},
                .y = {.name = "step time", .unit = Unit::nanoseconds},
                .series = {std::move(old_ones), std::move(new_ones)},
                .shaded_name = {}};
  return section("Launches", xy_chart("Step time of each launch", std::move(chart)) +
                                 folded("As a table", std::move(table).finish()));
}

std::string figures_section(const PairedResult& result) {
  if (result.figures.empty()) return "";
  HtmlTable table("phases and collectives, for information",
                  {"figure", "change", "interval (Holm)", "p of no change (Holm)"});
  for (const PairedFigure& figure : result.figures) {
    table.add({figure.name, error_text(figure.estimate),
               figure.change ? interval_text(figure.change->lower, figure.change->upper) : "-",
               fmt::format("{:.3f}", figure.adjusted_p_value)});
  }
  return section("Phases and collectives", std::move(table).finish());
}

}  // namespace

std::string change_section(const Report& report, const Report& baseline) {
  if (!report.has_parts() || !baseline.has_parts()) return "";
  std::vector<WaterfallTerm> terms;
  for (const StepPart& part : step_parts()) {
    const Nanoseconds change = report.summary.per_step.*part.time - baseline.summary.per_step.*part.time;
    if (change != 0) terms.push_back({.name = with_blanks(part.name), .change = static_cast<double>(change)});
  }
  const StepTime& before = baseline.summary.step_time;
  const double noise = before.median > 0 && !report.deterministic
                           ? static_cast<double>(before.median_absolute_deviation) / static_cast<double>(before.median)
                           : 0;
  return section("From the baseline to this run",
                 waterfall("What changed the step time", "baseline", static_cast<double>(before.mean), "now", terms,
                           noise, Unit::nanoseconds));
}

void set_verdict(Heading& heading, const std::string& verdict) {
  heading.verdict = verdict;
  heading.verdict_class = verdict == name_of(Verdict::ok) || verdict == name_of(Verdict::improved) ? "good"
                          : verdict == name_of(Verdict::inconclusive)                              ? "open"
                                                                                                   : "bad";
}

Content check_content(const Json& document, const JsonOrigin& origin) {
  const auto [result, report, baseline] = check_from_json(document, origin);
  Content content{.heading = {.title = title_of(report), .origin = origin_text(report)}, .sections = {}};
  set_verdict(content.heading, std::string(name_of(result.verdict)));
  // A simulation that became faster is an open question until it is stored.
  const bool is_news = report.deterministic && result.verdict == Verdict::improved;
  if (is_news) content.heading.verdict_class = "open";
  content.sections = {bullets(result.reasons), result.accept.empty() ? "" : paragraph("to accept it: " + result.accept),
                      headline_list(report),   change_section(report, baseline),
                      differences_of(result),  step_section(report),
                      notes_section(report)};
  return content;
}

Content paired_check_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const StoredPairedCheck check = paired_check_from_json(document, origin);
  const CentreInterval& change = check.result.change;
  Content content{.heading = {.title = check.title,
                              .origin = fmt::format("against another program: {} pairs of launches in turns, seed {}",
                                                    check.result.pairs, check.seed)},
                  .sections = {}};
  set_verdict(content.heading, std::string(name_of(check.result.verdict)));
  const std::string summary = fmt::format("step time {}, {:.0f} % interval {}, margin {}", error_text(change.estimate),
                                          100 * (1 - 2 * check.result.level), interval_text(change.lower, change.upper),
                                          percent_text(check.result.margin));
  std::string times;
  const auto add = [&](const char* name, const std::optional<CentreInterval>& of) {
    if (!of) return;
    times += paragraph(
        fmt::format("{} {}, interval {}", name, error_text(of->estimate), interval_text(of->lower, of->upper)));
  };
  add("time of ops", check.result.op_change);
  add("processor time", check.result.cpu_change);
  content.sections = {paragraph(summary), times, paragraph(paired_reason(check.result) + "."), launches_section(root),
                      figures_section(check.result)};
  reading.finish();
  return content;
}

}  // namespace tandem::pages
