#include "cli/base/stored_run.h"

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/run/report_json.h"
#include "topologies/base/strict_yaml.h"  // read_input_file

namespace tandem {

StoredRun stored_run(const std::string& file) {
  const std::string text = read_input_file(file, kMostDocumentBytes);
  StoredRun run{.report = report_from_json(text, file)};
  const JsonField::Json document = parse_json(text, file);
  if (const auto hash = document.find(kInputsHash); hash != document.end() && hash->is_string()) {
    run.inputs_hash = hash->get<std::string>();
  }
  if (const auto values = document.find(kScenarioValues); values != document.end() && values->is_object()) {
    for (const auto& [key, value] : values->items()) {
      if (value.is_string()) run.values[key] = value.get<std::string>();
    }
  }
  return run;
}

std::vector<std::string> content_changes(const StoredRun& now, const StoredRun& before) {
  if (now.report.scenario_hash == before.report.scenario_hash || now.values.empty() || before.values.empty()) return {};
  std::vector<std::string> changes = scenario_changes(now.values, before.values);
  if (changes.empty()) changes.emplace_back("scenario changed: no key, but the content of a file that it names");
  return changes;
}

}  // namespace tandem
