// What a result of MLPerf trained, and how.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/validation/ledger/ledger_machine.h"

namespace tandem::validation {

// The `workload` and `strategy` of a row in a training file (docs/validation.md).
struct LedgerJob {
  nlohmann::ordered_json workload;
  nlohmann::ordered_json strategy;
};

// Returns what a row means: without nodes that only evaluate, and with the time of a step of all devices where its logs
// count the examples of one.
LedgerRow as_trained(LedgerRow row);

// Throws NotPredicted for a benchmark whose layers Tandem does not have, and where the row does not say how devices
// divide the model.
LedgerJob job_of(const LedgerRow& row);

}  // namespace tandem::validation
