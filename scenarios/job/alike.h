// Finds the workers of a job that do the same, as far as the scenario tells: EngineOptions::alike.
#pragma once

#include <vector>

#include "scenarios/job/job.h"

namespace tandem {

// Returns a number for each worker, from all of the job but `alike`. Workers with the same number have equal shares of
// the batch, equal places in the model, and the same role. Returns nothing for traces, and where parameter servers
// serve workers in the order in which they arrive.
std::vector<int> alike_workers(const Job& job);

}  // namespace tandem
