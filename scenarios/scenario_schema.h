// The JSON Schema (draft-07) of scenario files, for editors: scenarios/scenario.schema.json of this build.
#pragma once

#include <string_view>

namespace tandem {

std::string_view scenario_schema();

}  // namespace tandem
