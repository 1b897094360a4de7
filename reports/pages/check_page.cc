#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/check.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/reading.h"
#include "reports/pages/sections.h"
#include "reports/report_json.h"
#include "reports/report_text.h"
#include "reports/text_table.h"

namespace tandem::pages {
namespace {

std::string reasons_of(const JsonField& root) {
  std::string items;
  for (const JsonField& reason : root.required("reasons").items()) {
    items += fmt::format("<li>{}</li>\n", escaped(reason.text()));
  }
  return items.empty() ? "" : "<ul class=\"notes\">\n" + items + "</ul>\n";
}

std::string differences_of(const JsonField& root) {
  HtmlTable table("what differs from the baseline", {"figure", "baseline", "now", "change"});
  bool any = false;
  for (const JsonField& item : root.required("differences").items()) {
    const double was = item.required("baseline_ns").number();
    const double is = item.required("current_ns").number();
    table.add({item.required("name").text(), time_text(was), time_text(is), was > 0 ? error_text(is / was - 1) : "-"});
    any = true;
  }
  return any ? section("What differs", std::move(table).finish()) : "";
}

// The parts of both steps, which add up to the change of the step.
std::string change_section(const Report& report, const Report& baseline) {
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
                 waterfall("What changed the step time", "baseline", static_cast<double>(before.median), "now", terms,
                           noise, Unit::nanoseconds));
}

std::string launches_section(const JsonField& root) {
  Series old_ones{.name = "old", .points = {}, .mark = Series::Mark::dots};
  Series new_ones{.name = "new", .points = {}, .is_hollow = {}, .mark = Series::Mark::dots};
  HtmlTable table("launches in their order", {"launch", "program", "version", "median step time"}, 3);
  int number = 0;
  for (const JsonField& item : root.required("launches").items()) {
    ++number;
    const std::string program = item.required("program").text();
    const double time = item.required("step_time_ns").number();
    Series& series = program == "new" ? new_ones : old_ones;
    series.points.emplace_back(number, time);
    if (&series == &new_ones) series.is_hollow.push_back(true);
    table.add({std::to_string(number), program, item.required("tandem_version").text(), time_text(time)});
  }
  XyChart chart{.x = {.name = "launch"},
                .y = {.name = "median step time", .unit = Unit::nanoseconds},
                .series = {std::move(old_ones), std::move(new_ones)},
                .shaded_name = {}};
  return section("Launches", xy_chart("Median step time of each launch", std::move(chart)) +
                                 folded("As a table", std::move(table).finish()));
}

std::string figures_section(const JsonField& root) {
  HtmlTable table("phases and collectives, for information",
                  {"figure", "change", "interval (Holm)", "p of no change (Holm)"});
  bool any = false;
  for (const JsonField& item : root.required("figures").items()) {
    const JsonField change = item.required("change");
    const JsonField lower = change.required("lower"), upper = change.required("upper");
    table.add({item.required("name").text(), error_text(change.required("estimate").number()),
               lower.is_null() || upper.is_null() ? "-" : interval_text(lower.number(), upper.number()),
               fmt::format("{:.3f}", item.required("adjusted_p_value").number())});
    any = true;
  }
  return any ? section("Phases and collectives", std::move(table).finish()) : "";
}

}  // namespace

void set_verdict(Heading& heading, const std::string& verdict) {
  heading.verdict = verdict;
  heading.verdict_class = verdict == name_of(Verdict::ok) || verdict == name_of(Verdict::improved) ? "good"
                          : verdict == name_of(Verdict::inconclusive)                              ? "open"
                                                                                                   : "bad";
}

Content check_content(const Json& document, const std::string& file) {
  Reading reading(document, file);
  const JsonField& root = reading.root();
  root.required("report");
  root.required("baseline");
  reading.finish();
  const Report report = report_from_document(document.at("report"), file);
  const Report baseline = report_from_document(document.at("baseline"), file);
  Content content{.heading = {.title = title_of(report), .origin = origin_text(report)}, .sections = {}};
  set_verdict(content.heading, root.required("verdict").text());
  // A simulation that became faster is an open question until it is stored.
  const bool is_news = report.deterministic && root.required("verdict").text() == name_of(Verdict::improved);
  if (is_news) content.heading.verdict_class = "open";
  content.sections = reasons_of(root) + headline_list(report) + change_section(report, baseline) +
                     differences_of(root) + step_section(report) + notes_section(report);
  reading.finish();
  return content;
}

Content paired_check_content(const Json& document, const std::string& file) {
  Reading reading(document, file);
  const JsonField& root = reading.root();
  const JsonField change = root.required("change");
  Content content{
      .heading = {.title = "Check against another program",
                  .origin = fmt::format("{} pairs of launches in turns, seed {}", root.required("pairs").small_count(),
                                        root.required("seed").count())},
      .sections = {}};
  set_verdict(content.heading, root.required("verdict").text());
  content.sections = paragraph(
      fmt::format("step time {}, {:.0f} % interval {}, margin {}", error_text(change.required("estimate").number()),
                  100 * root.required("confidence").number(),
                  interval_text(change.required("lower").number(), change.required("upper").number()),
                  percent_text(root.required("margin").number())));
  content.sections += launches_section(root) + figures_section(root);
  reading.finish();
  return content;
}

}  // namespace tandem::pages
