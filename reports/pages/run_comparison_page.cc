#include <fmt/format.h>

#include "reports/comparison/run_comparison.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/report_text.h"

namespace tandem::pages {

Content run_comparison_content(const Json& document, const JsonOrigin& origin) {
  const RunComparison runs = run_comparison_from_json(document, origin);
  Content content{
      .heading = {.title = title_of(runs.now),
                  .origin = fmt::format("{}: {}; the baseline {}: {}, {}", runs.name, origin_text(runs.now),
                                        runs.baseline_name, title_of(runs.baseline), origin_text(runs.baseline))},
      .sections = {}};
  HtmlTable table("both runs", {"figure", "baseline", "now", "change"});
  for (const auto& row : compared_rows(runs)) table.add({row.begin(), row.end()});
  content.sections = {change_section(runs.now, runs.baseline), section("Both runs", std::move(table).finish()),
                      bullets(comparison_remarks(runs)), step_section(runs.now), notes_section(runs.now)};
  return content;
}

}  // namespace tandem::pages
