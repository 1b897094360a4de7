// Reads a shell script as bash would run it, without running any program: variables, arrays, arithmetic, conditions,
// cases, loops over words, functions, and strings given to `eval` and `bash -c`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/shell/shell_values.h"

namespace tandem {

// A program with its arguments.
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands{};  // in the order in which they would be executed
  ShellValues values;                    // at the end
  std::vector<std::string> notes{};      // what could not be decided or is not read: "line 12: ..."
};

// Programs are taken to succeed. Throws InputError for a quoted text without an end, and for variables that become too
// large.
ShellScript read_shell_script(std::string_view text, const std::string& file);

}  // namespace tandem
