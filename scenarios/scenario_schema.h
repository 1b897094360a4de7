// The JSON Schema (draft-07) of scenario files, for editors.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// scenarios/scenario.schema.json of this build with every engine, strategy and cross-device operation that this program
// knows, those it has registered among them.
std::string scenario_schema();

// The file itself, which accepts any word where those names stand.
std::string_view scenario_schema_file();

}  // namespace tandem
