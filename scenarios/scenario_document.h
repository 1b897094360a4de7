// Reads scenarios that are variants of one document, as the points of a sweep are.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Reads a document as load_scenario() does, but computes no hash, and takes topologies and models from `parts` where
// these have them. Throws InputError as it does.
Scenario read_scenario_document(YamlDocument document, SharedParts& parts);

// Reports the keys of the document that mean nothing, and no other problems.
Diagnostics unknown_keys_of(YamlDocument document, SharedParts& parts);

}  // namespace tandem
