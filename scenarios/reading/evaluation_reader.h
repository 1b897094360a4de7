// Reads the `evaluation:` of a scenario, and says what it cannot be.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Returns nothing where there is no such map. `scenario` has its workload.
std::optional<EvaluationSettings> read_evaluation(const YamlReader& map, const Scenario& scenario);

struct EvaluationProblem {
  std::string path;  // "evaluation.on"
  std::string message;
};
// Returns why the scenario's job cannot evaluate as it asks for; nothing where it can.
std::optional<EvaluationProblem> evaluation_problem(const Scenario& scenario);

}  // namespace tandem
