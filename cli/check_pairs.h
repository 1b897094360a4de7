// `tandem check SCENARIO --against PROGRAM`: launches of this and of another tandem that take turns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/common_options.h"

namespace tandem {

struct PairFlags {
  std::string program;  // the other one
  double margin = 0.03;
  std::optional<std::uint64_t> seed{};  // of the order of launches; empty: drawn
  double launch_timeout_s = 600;
};

// Prints the verdict and returns its exit code. Throws InputError for launches that cannot be compared, and RunError
// for one that fails.
int check_pairs(const CommonOptions& common, const std::string& scenario, const PairFlags& flags);

}  // namespace tandem
