// The evaluations of a job.
#include <fmt/format.h>

#include <cmath>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/evaluations_text.h"

namespace tandem::pages {
namespace {

std::string number_or_dash(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : "-";
}

// Evenly chosen evaluations and the last one.
std::string evaluations_table(const Evaluations& evaluations) {
  constexpr std::size_t kMostRows = 200;
  const std::size_t count = evaluations.done.size(), every = (count + kMostRows - 1) / kMostRows;
  HtmlTable table(every > 1 ? fmt::format("evaluations, one of {}", every) : "evaluations",
                  {"after step", "time", "loss", "accuracy"});
  for (std::size_t i = 0; i < count; ++i) {
    if (i % every != 0 && i + 1 != count) continue;
    const Evaluated& one = evaluations.done[i];
    table.add({std::to_string(one.step), time_text(one.time), number_or_dash(one.loss),
               one.accuracy ? percent_text(*one.accuracy) : "-"});
  }
  return std::move(table).finish();
}

std::string losses_chart(const Evaluations& evaluations) {
  Series series{.name = "loss", .points = {}};
  for (const Evaluated& one : evaluations.done) {
    if (one.loss) series.points.emplace_back(static_cast<double>(one.step), *one.loss);
  }
  if (series.points.size() < 2) return "";
  XyChart chart{.x = {.name = "step"}, .y = {.name = "loss"}, .series = {std::move(series)}, .shaded_name = {}};
  return xy_chart("Loss of the evaluations", std::move(chart));
}

}  // namespace

std::string evaluations_section(const Report& report) {
  if (!report.evaluations) return "";
  const Evaluations& evaluations = *report.evaluations;
  const std::string time = evaluations.done.empty() ? "" : time_text(evaluations.median_time()) + ": ";
  const std::string text = paragraph(time + evaluations_sentence(evaluations) + ".");
  if (evaluations.done.empty()) return section("Evaluations", text);
  return section("Evaluations",
                 text + losses_chart(evaluations) + folded("As a table", evaluations_table(evaluations)));
}

}  // namespace tandem::pages
