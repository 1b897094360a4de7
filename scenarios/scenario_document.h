// Scenarios that are variants of one document: what a sweep reads, point by point.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Reads a document as load_scenario() does, without a hash, and with the topologies and models of `parts` where it
// names them again. Throws InputError likewise.
Scenario read_scenario_document(YamlDocument document, SharedParts& parts);

// Reports the keys of the document that mean nothing, and no other problems.
Diagnostics unknown_keys_of(YamlDocument document, SharedParts& parts);

}  // namespace tandem
