// The `sweep:` of a scenario: values that replace the scenario's, in every combination that meets the conditions.
// docs/sweep.md describes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/reading/condition.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

struct SweepAxis {
  std::string path;                       // "strategy.tensor"
  std::vector<const YamlNode*> values{};  // at least one
  int line = 0, column = 0;
  bool is_range = false;
};

struct SweepCondition {
  Condition condition;
  int line = 0, column = 0;
  std::string path{};  // "sweep.where[0]"
};

struct SweepSettings {
  std::vector<SweepAxis> axes;
  std::vector<SweepCondition> where;
  std::vector<std::unique_ptr<const YamlNode>> made;  // the values of ranges
};

// Reads the map at `sweep:` of the document, which must outlive the result. Reports problems to the reader's
// diagnostics.
std::shared_ptr<const SweepSettings> read_sweep(const YamlReader& map, const YamlDocument& document);

}  // namespace tandem
