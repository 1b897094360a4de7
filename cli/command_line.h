// The tandem command as a function: for programs that register strategies of their own and want every subcommand.
#pragma once

namespace tandem {

// Parses the arguments, runs the chosen subcommand and returns the exit code (docs/exit-codes.md).
int run_command_line(int argc, char** argv);

}  // namespace tandem
