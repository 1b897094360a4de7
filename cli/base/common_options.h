// What all subcommands share, without the parser of the command line.
#pragma once

#include <functional>
#include <string>

namespace tandem {

// Runs after parsing. Returns the exit code; throws what docs/exit-codes.md lists.
using Action = std::function<int()>;

// Options that every subcommand has.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  bool no_color = false;
  std::string output;  // a file; empty or "-": stdout
  std::string html{};  // a file for the result as a page; empty: none
};

}  // namespace tandem
