// The faults of a scenario as an engine makes them happen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/faults/faults.h"
#include "scenarios/job/job.h"

namespace tandem {

// Returns what goes wrong during the steps of this job; null: nothing. Of what comes again and again, it has the first
// kMostPeriods times of each; of workers that are lost at random, the first.
inline constexpr int kMostPeriods = 1000;
std::shared_ptr<const Faults> engine_faults(const Job& job);

// Returns what goes wrong, a line for each fault: "worker:3/GPU:5 takes 1.5 times as long from 20 s to 80 s".
std::vector<std::string> fault_texts(const FaultSettings& faults);

}  // namespace tandem
