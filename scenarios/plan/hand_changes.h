// What somebody who runs the scenario as it is would change first: the fields in which the best point differs from it,
// one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/sweep/sweep_space.h"

namespace tandem {

// Fields that take the best point's values together, while the others remain as the scenario has them.
using ChangedFields = std::vector<std::size_t>;  // indices into SweepSpace::fields()

// Returns the fields in which the point differs from the scenario, each for itself.
std::vector<ChangedFields> differences_of(const SweepSpace& space, const SweepSpace::Point& point);

// Returns what the scenario says in this field; "-" where it says nothing.
std::string value_as_it_is(const SweepSpace& space, std::size_t field);

}  // namespace tandem
