// Runs a drawn program under a strategy and says where it differs from what it must come to.
#pragma once

#include <functional>
#include <string>

#include "strategies/strategy/strategy.h"
#include "tests/conformance/kit/drawn_program.h"

namespace tandem {

// Returns "" where every step came to what it must, or was refused as it must be. Workers of a job call it together; a
// program that is refused on several of them ends their run with an error.
std::string difference_of(Worker& worker, Strategy& strategy, const DrawnProgram& program, const ProgramWorld& world);

// Draws programs and fails, with the simplest one, where one does not come to what it must. `run` calls what it is
// given on every worker of a new run.
//
// TANDEM_DRAWN_PROGRAMS=N draws N programs instead of the few of every day, and TANDEM_DRAWN_SEED=S begins with another
// seed.
using ProgramRunner = std::function<void(const std::function<void(Worker& worker, Strategy& strategy)>& program)>;
void expect_drawn_programs(const ProgramWorld& world, const ProgramRunner& run);

}  // namespace tandem
