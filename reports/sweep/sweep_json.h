// Writes a sweep as JSON (docs/sweep.md), and writes and reads the rows of its results file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/sweep/sweep_table.h"
#include "topologies/base/error.h"

namespace tandem {

nlohmann::ordered_json sweep_to_json(const SweepTable& table);
// Throws InputError with everything that is missing or wrong.
SweepTable sweep_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

nlohmann::ordered_json point_to_json(const SweptPoint& point);
class JsonField;
// Reads a point. Adds what is missing or wrong to the field's problems.
SweptPoint point_from_json(const JsonField& field);

}  // namespace tandem
