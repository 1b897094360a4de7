// Pages of checks of many scenarios, and of a launch against its history.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"

namespace tandem::pages {
namespace {

std::string change_or_dash(const JsonField& item) {
  return item.required("reference_ns").number() > 0 ? error_text(item.required("change").number_or_null()) : "-";
}

std::string time_or_dash(double nanoseconds) {
  return nanoseconds > 0 ? time_text(nanoseconds) : "-";
}

// "3 ok, 1 regressed"
std::string summary_text(const JsonField& summary) {
  std::vector<std::string> counts;
  for (const auto& [outcome, count] : summary.entries()) {
    counts.push_back(fmt::format("{} {}", count.small_count(), outcome));
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

constexpr int kInconclusive = 6;

// What failed comes first, then what is undecided.
int place_of_code(int code) {
  return code == 0 ? 2 : code == kInconclusive ? 1 : 0;
}

// Judges by the exit codes of the scenarios: 6 is inconclusive, and every other code except 0 is bad.
std::string_view class_of_codes(const std::set<int>& codes) {
  if (std::any_of(codes.begin(), codes.end(), [](int code) { return code != 0 && code != kInconclusive; }))
    return "bad";
  return codes.contains(kInconclusive) ? "open" : "good";
}

}  // namespace

Content suite_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  HtmlTable table("a verdict for each scenario",
                  {"scenario", "mode", "verdict", "reason", "step time", "compared with", "change"}, 4);
  std::vector<std::pair<int, JsonField>> scenarios;  // with the place of each
  std::set<int> codes;
  for (const JsonField& item : root.required("scenarios").items()) {
    const int code = item.required("exit_code").small_count();
    codes.insert(code);
    scenarios.emplace_back(place_of_code(code), item);
  }
  std::ranges::stable_sort(scenarios, {}, &std::pair<int, JsonField>::first);
  for (const auto& [place, item] : scenarios) {
    table.add({item.required("scenario").text(), item.required("mode").text(), item.required("outcome").text(),
               item.required("reason").text(), time_or_dash(item.required("step_time_ns").number()),
               time_or_dash(item.required("reference_ns").number()), change_or_dash(item)});
  }
  Content content{.heading = {.title = fmt::format("Checks of {} scenarios", scenarios.size()), .origin = ""},
                  .sections = {}};
  content.heading.verdict = summary_text(root.required("summary"));
  content.heading.verdict_class = class_of_codes(codes);
  content.sections = {section("Verdicts", std::move(table).finish())};
  reading.finish();
  return content;
}

Content history_check_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const JsonField exact = root.optional("exact");  // not in documents of earlier versions
  const bool is_exact = exact.present() && exact.boolean();
  Content content{.heading = {.title = root.required("scenario").text(),
                              .origin = is_exact ? "a simulation against its history"
                                                 : fmt::format("a launch against its history on {}",
                                                               root.required("machine").text())},
                  .sections = {}};
  set_verdict(content.heading, root.required("verdict").text());
  std::string reasons;
  for (const JsonField& reason : root.required("reasons").items()) reasons += paragraph(reason.text());
  Series launches{.name = "new launches", .points = {}, .mark = Series::Mark::dots};
  HtmlTable table("new launches", {"launch", "step time"});
  int number = 0;
  for (const JsonField& item : root.required("launches").items()) {
    const double time = item.required("step_time_ns").number();
    launches.points.emplace_back(++number, time);
    table.add({std::to_string(number), time_text(time)});
  }
  XyChart chart{.x = {.name = "launch"},
                .y = {.name = "step time", .unit = Unit::nanoseconds},
                .series = {std::move(launches)},
                .shaded_name = {}};
  if (const JsonField level = root.required("level_ns"); level.present() && level.number_or_null() > 0) {
    std::vector<std::pair<const char*, double>> lines = {{"level", level.number()}};
    if (!is_exact) {
      const double margin = root.required("margin").number();
      lines.emplace_back("margin above", level.number() * (1 + margin));
      lines.emplace_back("margin below", level.number() / (1 + margin));
    }
    const double most = std::max(2, number);
    for (const auto& [name, value] : lines) {
      chart.series.push_back({.name = name, .points = {{1, value}, {most, value}}, .mark = Series::Mark::dashes});
    }
  }
  content.sections = {reasons,
                      section("Launches", xy_chart("New launches and the level of the known ones", std::move(chart)) +
                                              folded("As a table", std::move(table).finish()))};
  reading.finish();
  return content;
}

}  // namespace tandem::pages
