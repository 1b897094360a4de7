// Writes a plan as JSON: docs/plan.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/plan/plan_table.h"

namespace tandem {

nlohmann::ordered_json plan_to_json(const PlanTable& table);

}  // namespace tandem
