#include "tests/scenarios/silent_keys.h"

#include <algorithm>
#include <cmath>

#include "reports/run/report_json.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/reading/sweep_settings.h"
#include "scenarios/run/runner.h"
#include "strategies/base/errors.h"

namespace tandem {

namespace {

// What a longer or shorter preparation moves: the start of a device's work in a step, by parts of a microsecond.
constexpr double kRounding = 1e-3, kRoundingNs = 200;

}  // namespace

bool Answer::names(const std::string& key, const std::string& opening) const {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    const std::size_t at = note.find(key);
    return note.starts_with(opening) && at != std::string::npos && at < note.find(": ", opening.size());
  });
}

Answer Scenarios::run(const std::string& text, const std::string& key, const std::string& value) {
  Answer answer;
  try {
    const std::string file = TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml";
    auto base = std::make_shared<const YamlDocument>(YamlDocument::parse("schema_version: 1\n" + text, file));
    const YamlDocument other = YamlDocument::parse("value: " + (value.empty() ? "~" : value), "value");
    std::vector<YamlDocument::Change> changes;
    if (!key.empty()) changes.push_back({key, other.root().entries.front().value});
    const Scenario scenario = read_scenario_document(YamlDocument::changed(std::move(base), changes), parts_);
    RunOptions options;
    options.measures_scaling = false;
    const RunResult result = run_scenario(scenario, options);
    answer.results = report_to_json(result.report);
    for (const char* field : {"scenario_hash", "settings", "notes"}) answer.results.erase(field);
    answer.results["topology"].erase("provenance");
    answer.notes = result.report.notes;
    answer.consulted = result.timeline.consulted;
  } catch (const Error& error) {
    answer.is_refused = true;
    answer.refusal = error.what();
  }
  return answer;
}

bool Scenarios::has(const std::string& text, const std::string& key, const std::string& value) {
  const YamlDocument base = YamlDocument::parse(text, "scenario"), other = YamlDocument::parse("v: " + value, "value");
  const YamlNode* node = node_at(base.root(), key);
  return node != nullptr && text_of(*node) == text_of(*other.root().entries.front().value);
}

bool Scenarios::differ(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  if (a.is_number() && b.is_number()) {
    const double one = a.get<double>(), other = b.get<double>();
    const double least = std::min(std::abs(one), std::abs(other));
    return std::abs(one - other) > (least > kRoundingNs ? kRoundingNs : 0) + kRounding * least;
  }
  if (!a.is_structured() || a.type() != b.type() || a.size() != b.size()) return a != b;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (a.is_object() && x.key() != y.key()) return true;
    if (differ(*x, *y)) return true;
  }
  return false;
}

Effect Scenarios::effect(const std::string& text, const Answer& before, const std::string& key,
                         const std::string& value) {
  const Answer after = run(text, key, value);
  if (after.is_refused) return Effect::refused;
  const bool is_changed = differ(before.results, after.results);
  if (after.names(key, "may have no effect here: ")) return Effect::noted;
  if (!after.names(key, "has no effect here: "))
    return is_changed || before.notes != after.notes ? Effect::changed : Effect::silent;
  // A note compares with a scenario that does not have the key.
  const Answer without = is_changed ? run(text, key) : after;
  return !without.is_refused && differ(without.results, after.results) ? Effect::wrong : Effect::noted;
}

}  // namespace tandem
