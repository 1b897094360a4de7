// Finds the workers of a job that do the same, and their devices, as far as the scenario tells: EngineOptions::alike
// and EngineOptions::alike_devices.
#pragma once

#include <vector>

#include "scenarios/job/job.h"

namespace tandem {

// Returns a number for each worker, from all of the job but `alike`. Workers with the same number have equal shares of
// the batch, equal places in the model, and the same role. Returns nothing for traces, where parameter servers
// serve workers in the order in which they arrive, and with an evaluator, to which workers copy.
std::vector<int> alike_workers(const Job& job);
// Returns how many neighbours on each worker have equal parts of the model. Strategies that a program registers may do
// something of their own on each device.
int alike_devices(const Job& job);

}  // namespace tandem
