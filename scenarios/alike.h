// Finds the workers of a scenario's job that do the same, as far as the scenario tells: EngineOptions::alike.
#pragma once

#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

// Returns a number for each task of the job (tasks_of). Tasks with the same number have equal shares of the batch,
// equal places in the model, and the same role. Returns nothing for traces, and where parameter servers serve tasks in
// the order in which they arrive.
std::vector<int> alike_tasks(const Scenario& scenario);

}  // namespace tandem
