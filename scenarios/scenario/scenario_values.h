// The keys of a scenario's file and their values, to say which of them differ between two versions of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario.h"

namespace tandem {

// The field of a document of a run, beside those of its report, that has them.
inline constexpr const char* kScenarioValues = "scenario_values";

using ScenarioValues = std::map<std::string, std::string>;  // by path, "strategy.name", "layers[3].gemm.m"

// Returns the values of the file after all settings, without its sweep, which changes no run; of very long files and of
// scenarios without a file, nothing.
ScenarioValues scenario_values(const Scenario& scenario);

// Says what differs, such as "scenario changed: steps 10 -> 20": the first ten keys, and how many more there are.
std::vector<std::string> scenario_changes(const ScenarioValues& now, const ScenarioValues& then);

}  // namespace tandem
