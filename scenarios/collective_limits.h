// What a topology says of the collectives of a run: at which sizes they were measured, and what its links carry at
// most.
#pragma once

#include <vector>

#include "reports/run_details.h"
#include "scenarios/runner.h"

namespace tandem {

// By operation, devices and nodes.
std::vector<CalibratedRange> calibrated_ranges(const std::vector<CollectiveSample>& samples);

// The bound of each operation and number of devices in the run; of groups on several numbers of machines the greatest.
// Empty without a topology, and where its links say nothing.
std::vector<CollectiveBound> collective_bounds(const RunResult& result);

}  // namespace tandem
