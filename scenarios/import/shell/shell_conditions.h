// Decides the conditions of a shell script: [ ... ], [[ ... ]] and the patterns of `case`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/shell/shell_values.h"

namespace tandem {

// A word, or one of && || ( ).
struct ShellTestPart {
  ShellWord word{};
  std::string symbol{};
};

std::string symbol_of(ShellMark mark);

struct ShellTruth {
  bool holds = false;
  std::string reason{};  // what could not be decided, and counts as false; empty: nothing
  std::string unset{};   // a variable that has no value and was compared as empty; empty: none
};

ShellTruth evaluated_test(const std::vector<ShellTestPart>& parts);
bool matches_shell_pattern(const ShellWord& subject, const ShellWord& pattern);

}  // namespace tandem
