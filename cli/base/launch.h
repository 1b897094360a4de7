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

// The program is command[0], a path. It runs in a process group of its own; whatever of this group still runs is killed
// when the program ends. Throws RunError when it cannot be started or takes longer than `timeout_s`, and Interrupted
// (cli/base/interrupt.h); the group is killed then.
LaunchResult launch(const std::vector<std::string>& command, double timeout_s);

}  // namespace tandem
