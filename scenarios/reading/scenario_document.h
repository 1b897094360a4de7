// Reads scenarios that are variants of one document, as the points of a sweep are.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/scenario/scenario.h"
#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Returns the document with these settings: YamlDocument::with_settings().
YamlDocument with_settings(std::shared_ptr<const YamlDocument> document, const std::vector<ScenarioSetting>& settings);

// Reads a document as load_scenario() does, but computes no hash, and takes what it names from `parts` where these have
// it. `topology` takes the place of the document's; null: none does. Throws InputError as it does.
Scenario read_scenario_document(YamlDocument document, SharedParts& parts,
                                std::shared_ptr<const Topology> topology = nullptr);

// Returns a scenario that was read, with these settings. Throws InputError as load_scenario() does.
Scenario changed_scenario(const Scenario& given, const std::vector<ScenarioSetting>& settings);

// Reports the keys of the document that mean nothing, and no other problems.
Diagnostics unknown_keys_of(YamlDocument document, SharedParts& parts);

}  // namespace tandem
