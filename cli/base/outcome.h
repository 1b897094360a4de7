// How an action of the command ends: its exit code, and what it says on stderr.
#pragma once

#include <functional>

namespace tandem {

// Runs the action, prints what it throws on stderr, and returns the exit code.
int run_to_exit_code(const std::function<int()>& action);

}  // namespace tandem
