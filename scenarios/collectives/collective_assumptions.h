// Finds the figures of a machine that move predicted collectives most and may be others.
#pragma once

#include <vector>

#include "reports/nccl_tests/nccl_tests_writer.h"
#include "scenarios/collectives/collective_job.h"
#include "scenarios/estimates/assumed_figures.h"

namespace tandem {

// Whether a prediction is so small that a few more of three sizes are a small part of what the command takes.
bool has_cheap_assumptions(const CollectiveJob& job);

// Predicts the sweep, of which `result` is a prediction, with both ends of the range of each figure that decided a time
// (assumed_figures()), and returns those that change the time of any size most, at most three of them and none that
// changes all by less than 0.1 %. `all_sizes`: those of the sweep; else the least, the largest, and one between them.
// Empty for a result that is measured. Throws what run_collective() throws.
std::vector<CollectiveAssumption> assumptions_of(const CollectiveJob& job, const CollectiveSweep& sweep,
                                                 const CollectiveResult& result, FigureRanges ranges, bool all_sizes);

}  // namespace tandem
