// Finds the best point of a sweep without simulating all of them: points that do not fit into memory, and those whose
// least possible time is above what another one takes, are left out.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "engine/launched_job.h"
#include "reports/plan/plan_table.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// How far a search is. `gap` as PlanTable::gap().
struct PlanProgress {
  std::string stage{};  // "bounds", "quick simulations", "whole simulations"
  int done = 0, of = 0;
  double gap = 0;
};

struct PlanOptions {
  int processes = 0;                 // 0: one for each processor
  std::optional<double> within_s{};  // ends the search after that time with what is known
  std::size_t wanted = 5;            // how many points are to be the best ones for certain
  PlanGoal goal = PlanGoal::time;
  bool has_usual = true;            // whether the scenario as it is runs, too, and what one would change in it first
  std::filesystem::path results{};  // keeps what is known of points (plan_store.h); empty: nothing is kept
  Rank rank{};                      // of this process, where several search together: they share `results`
  double wait_s = 600;              // how long the first rank waits while nothing comes from another one
  std::function<void(const PlanProgress& progress)> progress{};  // called a few times a second; may throw
  std::function<void(const std::string&)> note{};
};

// Returns the table before the search. Throws InputError for a scenario without a sweep, for an engine that measures,
// and what SweepSpace throws.
PlanTable planned_points(const Scenario& scenario, const PlanOptions& options);

// Searches, and fills in the table, so that the caller has what is known when this throws. The time of the best point
// is that of `tandem run`, unless the table says why not (PlanTable::stopped). What the table says does not depend on
// how many processes and ranks search, or on what `results` has, except where time ends a simulation or the search. Of
// several ranks, only the first one fills in a table of use: the others do their share, and return. Throws what
// run_sweep() does.
void run_plan(const Scenario& scenario, const PlanOptions& options, PlanTable& table);

}  // namespace tandem
