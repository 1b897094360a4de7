// Tells which keys of a Hugging Face configuration could matter to a model and are read by nobody.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/models/config_values.h"

namespace tandem {

// Returns the unread keys of a configuration, except those that change neither parameters nor the work of a step: token
// numbers, names of versions, scales, how values are initialised, and what a loss or a generation needs.
std::vector<std::string> unused_keys(const ConfigValues& config);

}  // namespace tandem
