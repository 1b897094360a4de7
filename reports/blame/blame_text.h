// What blame() found, for people and as a document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/base/json_document.h"
#include "reports/blame/blame.h"

namespace tandem {

// `all`: every row of long tables.
std::string blame_text(const Blame& blame, bool all = false);

// "rank 6 (DP rank 0, stage 3)"
std::string worker_text(const RecordedWorker& worker);

nlohmann::ordered_json blame_to_json(const Blame& blame);
// Returns what the text shows of a document. Throws InputError with everything that is missing or wrong.
Blame blame_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

}  // namespace tandem
