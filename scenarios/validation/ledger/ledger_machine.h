// The machine of a result, as the catalog has it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/validation/ledger/ledger_file.h"

namespace tandem::validation {

// Why a row has no prediction.
class NotPredicted {
 public:
  explicit NotPredicted(std::string why) : why_(std::move(why)) {}
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

// Returns the `topology` of a training file (docs/validation.md). Throws NotPredicted where the row does not say which
// machine it was, or the catalog has none such.
nlohmann::ordered_json machine_of(const LedgerRow& row);

}  // namespace tandem::validation
