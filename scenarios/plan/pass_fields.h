// The fields of a scenario on which the passes of a replica by themselves depend.
#pragma once

#include <string_view>

namespace tandem {

// Whether passes over equally many examples may differ where this field does. `is_mesh`: of strategies that divide the
// model over a mesh whose sizes the user gives.
bool decides_passes(std::string_view field, bool is_mesh);

}  // namespace tandem
