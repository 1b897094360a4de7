// Tells how wrong predictions like that of a scenario have been.
#pragma once

#include "reports/error_bands.h"
#include "reports/report.h"
#include "scenarios/scenario.h"

namespace tandem {

// Returns the kind of published training runs with which predictions of a strategy were compared: a word for
// PredictionKind::strategy. A strategy that a program registers is of the kind that it resembles.
std::string compared_as(const std::string& strategy);

// Returns what decides how wrong a simulation of the scenario is. Its topology must be known.
PredictionKind prediction_kind(const Scenario& scenario, const std::optional<SharedCores>& cores = {});

}  // namespace tandem
