// Runs the points of a sweep in child processes and keeps those that are finished.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/launched_job.h"
#include "reports/sweep/sweep_table.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

struct SweepOptions {
  int processes = 0;                           // 0: one for each processor, or a single one for engines that measure
  std::filesystem::path results{};             // keeps finished points; empty: none are kept
  std::vector<std::filesystem::path> merge{};  // results of other runs of the same sweep, which count as finished
  Rank rank{};                                 // of this process, where several share the points and a file system
  double wait_s = 600;                         // how long the first rank waits while no other one finishes a point
  // Called a few times a second; may throw. `done` of the `points` that were to run have ended, and the others take
  // `left_s` more, where that can be known.
  std::function<void(int done, int points, std::optional<double> left_s)> progress{};
  std::function<void(const std::string&)> note{};
};

// Returns the table before the first point has run. Throws InputError for a scenario without a sweep, and what
// SweepSpace throws.
SweepTable swept_points(const Scenario& scenario);

// Adds to each point that has not run what it is expected to cost this machine.
void estimate_points(const Scenario& scenario, SweepTable& table);

// Fills in the points of `table`, which are those of the scenario, as they finish, so that the caller keeps the
// finished ones when this throws. With several ranks, each runs its part of the points and writes it to a file of its
// own, and the first one waits for the others and puts all parts together. Throws InputError for results of another
// scenario, Error for a file that cannot be written, RunError if no process can be started or if no other rank finishes
// a point for wait_s, and what options.progress throws.
void run_sweep(const Scenario& scenario, const SweepOptions& options, SweepTable& table);

}  // namespace tandem
