// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct LaunchResult {
  int exit_code = 0;     // 128 + the signal's number if one ended it
  std::string signal{};  // the one that ended it: "signal 11 (Segmentation fault)"; empty: it ended by itself
  std::string output;
  std::string error;
};

// The program is command[0], a path. Throws RunError when it cannot be started or takes longer than `timeout_s` (it is
// killed then), and Interrupted on Ctrl-C, after which it no longer runs either.
LaunchResult launch(const std::vector<std::string>& command, double timeout_s);

}  // namespace tandem
