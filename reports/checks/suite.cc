#include "reports/checks/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/run/report_json.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

constexpr std::string_view kExpectationNotMet = "expectation not met";

// Outcomes from good to bad.
constexpr std::array<std::string_view, 8> kOutcomes = {
    "ok", "improved", "skipped", "inconclusive", kExpectationNotMet, "regressed", "model changed", "failed"};

bool is_worth_a_word(const CheckedScenario& checked) {
  return checked.is_bad() || checked.outcome() != "ok";
}

// The inverse of CheckedScenario::outcome().
void set_outcome(const JsonField& field, CheckedScenario& checked) {
  const std::string word = field.text();
  checked.state = word == "failed" ? CheckState::failed : word == "skipped" ? CheckState::skipped : CheckState::judged;
  if (checked.state != CheckState::judged) return;
  checked.misses_expectation = word == kExpectationNotMet;
  checked.verdict = checked.misses_expectation ? Verdict::ok : verdict_from_json(field);
}

CheckedScenario checked_scenario_of(const JsonField& field) {
  CheckedScenario checked{.file = field.required("file").text(),
                          .name = field.required("scenario").text(),
                          .mode = field.required("mode").text()};
  set_outcome(field.required("outcome"), checked);
  checked.exit_code = field.required("exit_code").small_count();
  checked.reason = field.required("reason").text();
  checked.accept = text_or_empty(field, "accept");
  checked.step_time = field.required("step_time_ns").count();
  checked.reference = field.required("reference_ns").count();
  checked.change = field.required("change").number_or_null();
  return checked;
}

std::string change_cell(const CheckedScenario& checked) {
  return checked.reference > 0 ? error_text(checked.change) : "-";
}

}  // namespace

std::string_view CheckedScenario::outcome() const {
  switch (state) {
    case CheckState::judged:
      return misses_expectation && (verdict == Verdict::ok || verdict == Verdict::improved) ? kExpectationNotMet
                                                                                            : name_of(verdict);
    case CheckState::skipped:
      return "skipped";
    case CheckState::failed:
      break;
  }
  return "failed";
}

std::string CheckedScenario::advice() const {
  return accept.empty() ? reason : fmt::format("{}; to accept it: {}", reason, accept);
}

std::string summary_of(const CheckedSuite& suite) {
  std::map<std::string_view, int> counts;
  for (const CheckedScenario& checked : suite) ++counts[checked.outcome()];
  std::vector<std::string> parts;
  for (const std::string_view outcome : kOutcomes) {
    if (counts.contains(outcome)) parts.push_back(fmt::format("{} {}", counts[outcome], outcome));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string suite_text(const CheckedSuite& suite) {
  TextTable table;
  table.add({"scenario", "verdict", "step time", "reference", "change", "by"});
  table.add_rule();
  std::string reasons;
  for (const CheckedScenario& checked : suite) {
    const auto [step, reference] = time_texts(checked.step_time, checked.reference);
    table.add({checked.name, std::string(checked.outcome()), checked.step_time > 0 ? step : "-",
               checked.reference > 0 ? reference : "-", change_cell(checked),
               checked.mode.empty() ? "-" : checked.mode});
    if (is_worth_a_word(checked)) {
      const bool has_file = checked.reason.starts_with(checked.file);  // a mistake in it
      reasons += wrapped_list("", words_of((has_file ? "" : checked.file + ": ") + checked.reason), "");
      if (!checked.accept.empty()) reasons += fmt::format("  to accept it: {}\n", shown(checked.accept));
    }
  }
  return table.text() + (reasons.empty() ? "" : "\n" + reasons) + "\n" + summary_of(suite) + "\n";
}

nlohmann::ordered_json suite_to_json(const CheckedSuite& suite) {
  using Object = nlohmann::ordered_json;
  Object json = document_of("suite");
  json["summary"] = Object::object();
  for (const CheckedScenario& checked : suite) {
    Object& count = json["summary"][std::string(checked.outcome())];
    count = count.is_null() ? 1 : count.get<int>() + 1;
  }
  json["scenarios"] = Object::array();
  for (const CheckedScenario& checked : suite) {
    Object one = {{"file", checked.file},
                  {"scenario", checked.name},
                  {"mode", checked.mode},
                  {"outcome", checked.outcome()},
                  {"exit_code", checked.exit_code},
                  {"reason", checked.reason},
                  {"step_time_ns", checked.step_time},
                  {"reference_ns", checked.reference},
                  {"change", checked.change}};
    if (!checked.accept.empty()) one["accept"] = checked.accept;
    if (checked.interval) one["interval"] = {checked.interval->first, checked.interval->second};
    if (checked.document) one["check"] = *checked.document;
    json["scenarios"].push_back(std::move(one));
  }
  return json;
}

CheckedSuite suite_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  CheckedSuite suite;
  for (const JsonField& item : reading.root().required("scenarios").items()) suite.push_back(checked_scenario_of(item));
  reading.finish();
  return suite;
}

}  // namespace tandem
