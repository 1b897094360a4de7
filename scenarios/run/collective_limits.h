// What a topology tells about the collectives of a run: the sizes at which they were measured, and how fast its links
// allow them to be.
#pragma once

#include <vector>

#include "reports/run/run_details.h"
#include "scenarios/run/run_result.h"

namespace tandem {

// Returns the measured sizes, by operation, devices and nodes.
std::vector<CalibratedRange> calibrated_ranges(const std::vector<CollectiveSample>& samples);

// Returns the bound of each operation and number of devices in the run: the greatest, if groups of that size are on
// different numbers of machines. Returns nothing without a topology, and where its links set no bound.
std::vector<CollectiveBound> collective_bounds(const RunResult& result);

}  // namespace tandem
