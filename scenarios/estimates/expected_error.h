// Tells how wrong predictions like that of a job have been.
#pragma once

#include "reports/run/error_bands.h"
#include "reports/run/report.h"
#include "scenarios/job/job.h"

namespace tandem {

// Returns StrategyInfo::compared_as as a word for PredictionKind::strategy.
std::string compared_as(const std::string& strategy);

// Returns what decides how wrong a simulation of the job is. Its topology must be known.
PredictionKind prediction_kind(const Job& job, const std::optional<SharedCores>& cores = {});

}  // namespace tandem
