// A run with what pictures of it need beyond its report, for pages and for documents from which pages are made.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/run/runner.h"

namespace tandem {

nlohmann::ordered_json details_json(const RunResult& result);
// The report with these details.
nlohmann::ordered_json with_details(const RunResult& result);

}  // namespace tandem
