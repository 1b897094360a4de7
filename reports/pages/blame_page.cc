// The page of who slowed a job down.
#include <fmt/format.h>

#include <algorithm>

#include "reports/base/text_table.h"
#include "reports/blame/blame_text.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"

namespace tandem::pages {
namespace {

constexpr double kNanoseconds = 1e9;  // of a second

std::string three_digits(double slowdown) {
  return fmt::format("{:.3f}", slowdown);
}

double percent_lost(double slowdown) {
  constexpr double kPercent = 100;
  return std::max(0.0, (slowdown - 1) * kPercent);
}

std::string workers_section(const Blame& blame) {
  HeatMap map{.rows = {}, .columns = {}, .values = {}, .unit = Unit::percent, .column_name = "DP rank"};
  HtmlTable table("workers", {"worker", "slowdown"});
  for (std::size_t replica = 0; replica < blame.replicas; ++replica) map.columns.push_back(std::to_string(replica));
  for (std::size_t stage = 0; stage < blame.stages; ++stage) {
    map.rows.push_back(fmt::format("stage {}", stage));
    map.values.emplace_back();
    for (std::size_t replica = 0; replica < blame.replicas; ++replica) {
      map.values.back().push_back(percent_lost(blame.by_worker[replica * blame.stages + stage]));
    }
  }
  for (std::size_t i = 0; i < blame.workers.size(); ++i) {
    table.add({worker_text(blame.workers[i]), three_digits(blame.by_worker[i])});
  }
  return section("Workers", paragraph("How much longer a step takes if only the stage of a worker, or only its DP "
                                      "rank, is as slow as it was: the lesser of both.") +
                                heat_map("Slowdown by worker", map) + folded("As a table", std::move(table).finish()));
}

std::string blamed_table(const std::string& what, const std::vector<BlamedPart>& parts) {
  HtmlTable table(what, {what, "slowdown"});
  for (const BlamedPart& part : parts) table.add({part.name, three_digits(part.slowdown)});
  return std::move(table).finish();
}

std::string steps_section(const Blame& blame) {
  HeatMap map{.rows = {}, .columns = {}, .values = {}, .unit = Unit::percent, .column_name = "step"};
  for (const int step : blame.steps) map.columns.push_back(std::to_string(step));
  const auto add = [&](const std::string& name, const std::vector<double>& slowdowns) {
    map.rows.push_back(name);
    map.values.emplace_back();
    for (const double slowdown : slowdowns) map.values.back().push_back(percent_lost(slowdown));
  };
  add("all ops", blame.step_slowdowns);
  if (blame.stages > 1) {
    for (const BlamedPart& part : blame.by_stage) add(part.name, part.by_step);
  }
  for (const BlamedPart& part : blame.by_type) add(part.name, part.by_step);
  return section("Steps", heat_map("Slowdown by step", map));
}

std::string fixes_section(const Blame& blame) {
  HtmlTable table("what would be gained", {"if it took its ideal time", "a step", "of the slowdown"});
  for (const Fix& fix : blame.fixes) {
    table.add({fix.what, time_text(fix.step_s * kNanoseconds), percent_text(fix.share)});
  }
  return section("What would be gained", std::move(table).finish());
}

std::string path_section(const Blame& blame) {
  HtmlTable table("critical path", {"worker", "type of op", "of a step"}, 2);
  for (const BlamedPath& part : blame.path) {
    table.add({worker_text(blame.workers[static_cast<std::size_t>(part.worker)]), part.type,
               time_text(part.step_s * kNanoseconds)});
  }
  return section("Critical path", std::move(table).finish());
}

}  // namespace

Content blame_content(const Json& document, const JsonOrigin& origin) {
  const Blame blame = blame_from_json(document, origin);
  Content content{.heading = {.title = fmt::format("{}: slowdown {:.3f}", blame.name, blame.slowdown),
                              .origin = fmt::format("{} workers ({} DP ranks x {} stages), {} steps of {}, ideally {}",
                                                    blame.workers.size(), blame.replicas, blame.stages,
                                                    blame.steps.size(), time_text(blame.replayed_s * kNanoseconds),
                                                    time_text(blame.ideal_s * kNanoseconds))},
                  .sections = {}};
  content.sections = {workers_section(blame), fixes_section(blame)};
  if (blame.stages > 1) content.sections.push_back(section("Stages", blamed_table("stage", blame.by_stage)));
  content.sections.push_back(section("Types of ops", blamed_table("type of op", blame.by_type)));
  content.sections.push_back(steps_section(blame));
  content.sections.push_back(path_section(blame));
  if (!blame.notes.empty()) content.sections.push_back(section("Notes", bullets(blame.notes)));
  return content;
}

}  // namespace tandem::pages
