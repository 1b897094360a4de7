// The `sweep:` of a scenario: values that take the place of the scenario's, in every combination that meets the
// conditions. docs/sweep.md
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/sweep/condition.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

struct SweepAxis {
  std::string path;                       // "strategy.tensor"
  std::vector<const YamlNode*> values{};  // at least one
  int line = 0, column = 0;
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

// The map at `sweep:` of the document, which the result refers to. What is wrong goes to the reader's diagnostics.
std::shared_ptr<const SweepSettings> read_sweep(const YamlReader& map, const YamlDocument& document);

// The value at a path of maps; null where there is none.
const YamlNode* node_at(const YamlNode& root, std::string_view path);

}  // namespace tandem
