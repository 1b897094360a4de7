// Jobs in which workers may represent others, and their comparison with runs in which every worker is simulated.
#pragma once

#include <string>

#include "scenarios/run/runner.h"

namespace tandem::symmetric {

struct SymmetricJob {
  std::string machine = "hgx-h100";
  std::string fabric = "switch";
  int workers = 6;
  int per_worker = 8;
  std::string strategy = "{name: multi_worker_mirrored}";
  std::string workload;
  bool has_chief = false;
  bool has_straggler = false;
  bool has_slow_link = false;
  std::string overrides{};  // of the cluster

  std::string text() const;  // the scenario
};

// Returns a workload of layers.
std::string layers(int batch, const std::string& bucket = "2MB");

// With symmetry on machines that are described once, without it on machines that are built one by one.
RunResult run(const SymmetricJob& job, bool symmetry);

// Returns how many workers were simulated.
int expect_equal_runs(const SymmetricJob& job);

// Returns why every worker was simulated, or nothing.
std::string note_of(const SymmetricJob& job);

}  // namespace tandem::symmetric
