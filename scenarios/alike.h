// Which workers of a scenario's job do the same, as far as the scenario tells: EngineOptions::alike.
#pragma once

#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

// A number for each task of the job (tasks_of); tasks of one number have equal shares of the batch, equal places in the
// model, and the same role. Empty where tasks meet at parameter servers, in the order in which each of them comes.
std::vector<int> alike_tasks(const Scenario& scenario);

}  // namespace tandem
