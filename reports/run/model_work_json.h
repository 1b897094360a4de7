// The work of a model and its costs in documents.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/base/json_fields.h"
#include "reports/run/report.h"

namespace tandem {

// Adds `model_work` and `price` to a report's document, with the rates that follow from them, which are not read back.
void add_work_and_price(nlohmann::ordered_json& document, const Report& report);
void read_work_and_price(const JsonField& root, Report& report);

// Returns the rates that are known, by name: "mfu", "tokens_per_s".
nlohmann::ordered_json rates_to_json(const RunRates& rates);
RunRates rates_from_json(const JsonField& field);

}  // namespace tandem
