// Shows a stored document of any kind as the text that the command which wrote it prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/base/json_document.h"

namespace tandem {

// Shows everything with `all`: every collective of a report, every part of a comparison, every point of a sweep. `file`
// is the name in messages. Throws InputError for a document of an unknown kind, and for one that is wrong.
std::string stored_text(const nlohmann::ordered_json& document, const JsonOrigin& origin, bool all = false);

}  // namespace tandem
