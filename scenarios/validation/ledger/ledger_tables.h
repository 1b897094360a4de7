// Results of MLPerf as tables of training runs, which are replayed as others are.
#pragma once

#include <string>
#include <vector>

#include "reports/validation/validation.h"
#include "scenarios/measurements/training_file.h"
#include "scenarios/validation/ledger/ledger_file.h"

namespace tandem::validation {

struct LedgerTables {
  // A series each: what one submitter ran of one benchmark on one kind of accelerator in one round, from the fewest
  // devices to the most. The source is the submitter.
  std::vector<TrainingTable> tables{};
  std::vector<LeftOut> left_out{};  // why rows are not predicted, and how many, most first
};

// `file` names the rows in messages.
LedgerTables tables_of_ledger(const std::vector<LedgerRow>& rows, const std::string& file);

}  // namespace tandem::validation
