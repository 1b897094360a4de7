// The options of `tandem check`, and what its modes have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/common_options.h"
#include "reports/checks/check.h"
#include "reports/checks/paired_gate.h"

namespace tandem {

// Files beside the result, for other programs; empty: none.
struct CheckOutputs {
  std::string junit;
  std::string markdown;
  std::string google_benchmark;
  std::string csv;
};

struct CheckFlags {
  CommonOptions common;
  std::string target;                   // a scenario, a folder of them, or a list of files
  std::vector<std::string> settings{};  // --set
  std::string baseline;                 // a golden report, or a folder of them
  std::string against;                  // another tandem
  std::string history;                  // a file of JSON lines
  bool update = false;
  bool always = false;  // run even if nothing that decides the times has changed
  bool bisect = false;
  CheckLimits limits;
  double margin = kMeasuredTolerance;
  std::optional<std::uint64_t> seed{};  // of the order of launches; empty: drawn
  PairedGates gates{};                  // of --against
  double launch_timeout_s = 600;
  int tries = 3;       // launches while others disturb them
  std::string commit;  // for the history; empty: asked of the environment and of git
  CheckOutputs outputs;
};

}  // namespace tandem
