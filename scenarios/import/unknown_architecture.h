// What to say about a model of Hugging Face whose architecture is not known.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/config_values.h"

namespace tandem {

// The message for an unknown `model_type`: what of it is not modelled, and the nearest of the known ones by name, else
// by the keys of the configuration. Where none is near it lists those that are known.
std::string about_unknown_architecture(const std::string& type, const ConfigValues& config,
                                       const std::vector<std::string>& known);

}  // namespace tandem
