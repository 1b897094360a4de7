// Tells how wrong predictions like that of a job have been.
#pragma once

#include "reports/errors/error_bands.h"
#include "reports/nccl_tests/nccl_tests_writer.h"
#include "reports/run/report.h"
#include "scenarios/job/job.h"

namespace tandem {

// Returns StrategyInfo::compared_as as a word for PredictionKind::strategy.
std::string compared_as(const std::string& strategy);

// Returns what decides how wrong a simulation of the job is. Its topology must be known.
PredictionKind prediction_kind(const Job& job, const std::optional<SharedCores>& cores = {});

// Returns how wrong predicted times of GPUs' collectives over that many machines have been, for each band of sizes that
// the table has.
std::vector<SizesError> expected_errors(const Topology& topology, int machines, const CollectiveTable& predicted);

// Returns the group of collectives over that many machines of a topology.
PredictionGroup collective_group(const Topology& topology, int machines);

}  // namespace tandem
