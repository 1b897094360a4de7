// The JSON Schema (draft-07) of scenario files, for editors.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Returns scenarios/scenario.schema.json of this build with the names of all engines, strategies and cross-device
// operations that this program knows, including those it has registered.
std::string scenario_schema();

// Returns the file itself, which accepts any word in place of those names.
std::string_view scenario_schema_file();

}  // namespace tandem
