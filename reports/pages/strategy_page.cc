// The page of strategies side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/base/text_table.h"
#include "reports/comparison/strategy_comparison.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/report_text.h"

namespace tandem::pages {
namespace {

// Two bars for each run: the measured step, and below it, thinner, the simulated one.
std::string bars_section(const std::vector<Comparison>& comparisons) {
  std::vector<Bar> bars;
  const std::vector<std::string> labels = strategy_labels(comparisons);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Comparison& one = comparisons[i];
    if (!one.has_parts()) continue;
    for (const bool is_measured : {true, false}) {
      const Report& report = is_measured ? one.measured : one.predicted;
      Bar bar{.label = is_measured ? fmt::format("{} on {}", labels[i], report.devices) : "simulated",
              .parts = {},
              .is_thin = !is_measured};
      for (const StepPart& part : step_parts()) {
        bar.parts.push_back(part_of_step(part, static_cast<double>(report.summary.per_step.*part.time)));
      }
      bars.push_back(std::move(bar));
    }
  }
  if (bars.empty()) return "";
  return section("Where the steps go, measured, and simulated below",
                 stacked_bars("Parts of a step of each strategy, measured and simulated", bars, Unit::nanoseconds));
}

std::string table_section(const std::vector<Comparison>& comparisons) {
  HtmlTable table(
      "a row for each run",
      {"strategy", "farthest part, of the step", "devices", "cores", "measured", "simulated", "error", "noise"}, 2);
  const std::vector<std::string> labels = strategy_labels(comparisons);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Comparison& one = comparisons[i];
    const ComparedFigure& step = one.figure("step_time");
    const std::optional<DecidingPart> part = farthest_part(one);
    table.add({labels[i], part ? part->name + " " + error_text(part->of_step) : "-",
               std::to_string(one.measured.devices),
               one.measured.cores ? std::to_string(one.measured.cores->cores) : "-", time_text(step.measured),
               time_text(step.predicted), step.error ? error_text(*step.error) : "disturbed", percent_text(one.noise)});
  }
  return section("Errors of the step", std::move(table).finish());
}

std::string list_section(const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string list = "<ul>\n";
  for (const std::string& item : items) list += "<li>" + escaped(item) + "</li>\n";
  return section(title, list + "</ul>\n");
}

}  // namespace

Content strategy_comparison_content(const Json& document, const JsonOrigin& origin) {
  const StrategyComparison strategies = strategy_comparison_from_json(document, origin);
  const std::vector<Comparison>& comparisons = strategies.comparisons;
  const Report& measured = comparisons.front().measured;
  Content content{.heading = {.title = measured.scenario + ": every strategy, measured and simulated",
                              .origin = fmt::format("{}; against {}", origin_text(measured),
                                                    origin_text(comparisons.front().predicted))},
                  .sections = {}};
  const std::vector<std::string> sentences = summary_sentences(comparisons);
  content.heading.verdict = sentences.empty() ? "disturbed, no error can be told" : sentences.front();
  content.heading.verdict_class = sentences.empty() ? "bad" : "open";
  content.sections = {bars_section(comparisons), table_section(comparisons), list_section("In short", sentences),
                      list_section("Left out", strategies.left_out), notes_section(measured)};
  return content;
}

}  // namespace tandem::pages
