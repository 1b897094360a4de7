// The message about a Hugging Face model whose architecture is unknown.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/models/config_values.h"

namespace tandem {

// Returns the message for an unknown `model_type`: which of its parts are not modelled, and the nearest known type by
// name, else by the keys of the configuration. Lists all known types where none is near.
std::string about_unknown_architecture(const std::string& type, const ConfigValues& config,
                                       const std::vector<std::string>& known);

}  // namespace tandem
