#include "reports/comparison/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

// Compares bits: NaN equals itself, and the two zeros differ.
bool is_same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string difference_text(std::string_view what, double value, double unseeded) {
  return fmt::format("{} is {:.17g}, and {:.17g} without a seed", what, value, unseeded);
}

std::string seeds_text(const Exploration& exploration) {
  const std::uint64_t first = exploration.first_seed;
  if (exploration.schedules == 1) return fmt::format("1 schedule (seed {})", first);
  return fmt::format("{} schedules (seeds {} to {})", exploration.schedules, first,
                     first + static_cast<std::uint64_t>(exploration.schedules) - 1);
}

std::string verdict_text(const Exploration& exploration) {
  if (exploration.failure) {
    return fmt::format("seed {} fails, after {} that did not: {}\nto see it again:\n  {}\n", exploration.failure->seed,
                       exploration.completed, shown_text(exploration.failure->what),
                       shown(exploration.failure->command));
  }
  std::string text = seeds_text(exploration) + ": ";
  text += exploration.values_compared ? "all end with the values of the run without a seed, bit for bit\n"
                                      : "all end; the runs carry no values that could be compared\n";
  return text + fmt::format("choices     {:>12}   in all, of who goes first\n", exploration.choices);
}

}  // namespace

void Exploration::add(const Report& run) {
  const Nanoseconds time = run.summary.step_time.mean;
  min_step_time = completed == 0 ? time : std::min(min_step_time, time);
  max_step_time = completed == 0 ? time : std::max(max_step_time, time);
  if (const auto count = run.settings.find("schedule_choices"); count != run.settings.end()) {
    choices += std::stoull(count->second);
  }
  ++completed;
}

std::string difference_of_values(const Report& run, const Report& unseeded) {
  if (run.loss.size() != unseeded.loss.size()) {
    return fmt::format("there are {} losses, and {} without a seed", run.loss.size(), unseeded.loss.size());
  }
  for (std::size_t step = 0; step < run.loss.size(); ++step) {
    if (is_same(run.loss[step], unseeded.loss[step])) continue;
    return difference_text(fmt::format("loss of step {}", step), run.loss[step], unseeded.loss[step]);
  }
  for (const auto& [name, value] : unseeded.metrics) {
    const auto found = run.metrics.find(name);
    if (found == run.metrics.end()) return fmt::format("{} is there without a seed only", name);
    if (!is_same(found->second, value)) return difference_text(name, found->second, value);
  }
  return "";
}

std::string exploration_text(const Exploration& exploration) {
  std::string text = title_of(exploration.unseeded) + "\n" + verdict_text(exploration);
  text += fmt::format("step time   {:>12}   without a seed", time_text(exploration.unseeded.summary.step_time.mean));
  if (exploration.completed > 0) {
    text +=
        fmt::format("; {} to {} with one", time_text(exploration.min_step_time), time_text(exploration.max_step_time));
  }
  return text + "\n";
}

nlohmann::ordered_json exploration_to_json(const Exploration& exploration) {
  nlohmann::ordered_json json = document_of("exploration");
  json["first_seed"] = exploration.first_seed;
  json["schedules"] = exploration.schedules;
  json["completed"] = exploration.completed;
  json["choices"] = exploration.choices;
  json["values_compared"] = exploration.values_compared;
  json["failure"] = nullptr;
  if (const auto& failure = exploration.failure) {
    json["failure"] = {{"seed", failure->seed}, {"what", failure->what}, {"command", failure->command}};
  }
  json["step_time_ns"] = {{"min", exploration.min_step_time}, {"max", exploration.max_step_time}};
  json["unseeded"] = report_to_json(exploration.unseeded);
  return json;
}

Exploration exploration_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const JsonField time = root.required("step_time_ns"), failure = root.required("failure");
  Exploration exploration{.unseeded = report_from_field(root.required("unseeded")),
                          .values_compared = root.required("values_compared").boolean(),
                          .first_seed = static_cast<std::uint64_t>(root.required("first_seed").whole_number()),
                          .schedules = root.required("schedules").small_count(),
                          .completed = root.required("completed").small_count(),
                          .choices = static_cast<std::uint64_t>(root.required("choices").whole_number()),
                          .min_step_time = time.required("min").count(),
                          .max_step_time = time.required("max").count(),
                          .failure = {}};
  if (failure.present() && !failure.is_null()) {
    exploration.failure = FailedSchedule{.seed = static_cast<std::uint64_t>(failure.required("seed").whole_number()),
                                         .what = failure.required("what").text(),
                                         .command = failure.required("command").text()};
  }
  reading.finish();
  return exploration;
}

}  // namespace tandem
