// A run as a page wants it: its report, and what its pictures need beyond that.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/runner.h"

namespace tandem {

nlohmann::ordered_json details_json(const RunResult& result);
// The report with these details.
nlohmann::ordered_json with_details(const RunResult& result);

}  // namespace tandem
