// The fields of a scenario on which the passes of a replica by themselves depend.
#pragma once

#include <string_view>

namespace tandem {

// Whether passes over equally many examples may differ where this field does. `has_stages`: of strategies for which
// has_stages() holds (lone_passes.h).
bool decides_passes(std::string_view field, bool has_stages);

}  // namespace tandem
