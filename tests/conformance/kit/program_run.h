// Runs a drawn program under a strategy and says where it differs from what it must come to.
#pragma once

#include <string>

#include "strategies/base/strategy.h"
#include "tests/conformance/kit/drawn_program.h"

namespace tandem {

// Returns "" where every step came to what it must, or was refused as it must be. Workers of a job call it together; a
// program that is refused on several of them ends their run with an error.
std::string difference_of(Worker& worker, Strategy& strategy, const DrawnProgram& program, const ProgramWorld& world);

}  // namespace tandem
