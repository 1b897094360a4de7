// MemoryNeed as JSON, and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/run/memory_need.h"

namespace tandem {

class JsonField;

nlohmann::ordered_json memory_to_json(const MemoryNeed& need);
// Reads a need. Adds what is missing or wrong to the field's problems.
MemoryNeed memory_from_json(const JsonField& field);

}  // namespace tandem
