// Evaluations as JSON, and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/run/evaluations.h"

namespace tandem {

class JsonField;

nlohmann::ordered_json evaluations_to_json(const Evaluations& evaluations);
// Reads evaluations. Adds what is missing or wrong to the field's problems.
Evaluations evaluations_from_json(const JsonField& field);

}  // namespace tandem
