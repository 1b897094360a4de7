// A stored run: the document of `run --json`, or a baseline of `check --update`.
#pragma once

#include <string>

#include "reports/run/report.h"
#include "scenarios/scenario/scenario_values.h"

namespace tandem {

struct StoredRun {
  Report report;
  ScenarioValues values{};    // of its scenario; empty: not known
  std::string inputs_hash{};  // of a baseline: what its times follow from; empty: not known
};

// The field of a baseline that identifies its inputs.
inline constexpr const char* kInputsHash = "inputs_hash";

// Throws InputError for a file that cannot be read or is no stored run.
StoredRun stored_run(const std::string& file);

// Says which keys of the scenario differ from those of an earlier run, where both are known; nothing if the contents
// are equal or unknown.
std::vector<std::string> content_changes(const StoredRun& now, const StoredRun& before);

}  // namespace tandem
