// A job configuration of torchtitan as a scenario.
#pragma once

#include <string>

#include "scenarios/import/torchtitan.h"
#include "scenarios/import/usual_choices.h"

namespace tandem {

// Returns the scenario's text. `file` is the configuration's, for messages. Throws InputError.
std::string titan_scenario(const TitanJob& job, const std::string& file, Choices& choices);

}  // namespace tandem
