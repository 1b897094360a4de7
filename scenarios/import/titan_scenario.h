// A job configuration of torchtitan as a scenario.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/titan/titan_job.h"
#include "scenarios/import/usual_choices.h"

namespace tandem {

// Returns the scenario's text, and adds what it leaves out of the job. Throws InputError.
std::string titan_scenario(const TitanJob& job, Choices& choices, std::vector<std::string>& left_out);

}  // namespace tandem
