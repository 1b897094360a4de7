// Runs a scenario on an engine and returns its report.
//
// Threads: one run at a time in a process, as for Engine. Worker 0's task calls RunOptions::progress during the run.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scenarios/run/run_result.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// How a scenario is run.
struct RunOptions {
  std::optional<std::uint64_t> schedule_seed{};  // see EngineOptions::schedule_seed
  double memory_share = 1;                       // of this machine's memory: others run at the same time
  bool measures_scaling = true;                  // run simulations again, on one replica, for scaling_efficiency
  bool merges_workers = false;                   // simulations: three alike workers may have the figures of one
  // Simulations: one of workers that are alike runs for all, without a witness, and work that repeats takes the times
  // that it took before (EngineOptions::merges_repeats). Step times may differ, by up to 0.6 % in trials.
  bool is_quick = false;
  Figures figures = Figures::all;  // of the report's summary
  bool only_report = false;        // simulations: the timeline may lack passes of a step that repeat others
  bool has_all_memory = false;     // simulations: the memory of the devices is no limit
  bool may_resume = false;         // from the checkpoint of an interrupted run; else such a run is refused
  bool injects_faults = false;     // real engines: the scenario's faults are made to happen; else they are refused
  // Simulations: as many devices wait for one another in every step, whatever their number. Empty: those of the job.
  std::optional<int> devices_in_step{};
  std::function<void(int step, int steps)> progress{};  // called from worker 0 after each step; may be empty
};

// Runs the scenario. Throws InputError, with the place in the file, for a scenario that breaks a rule or that the
// engine cannot run; UnavailableError for an engine or device that is not there; RunError for a run that fails.
RunResult run_scenario(const Scenario& scenario, const RunOptions& options = {});

// Returns the topology that run_scenario() would use, without a run: the scenario's. If it names none, calibrates this
// machine for an engine that models a machine, and returns null for an engine that runs on this machine.
std::shared_ptr<const Topology> topology_for(const Scenario& scenario);

}  // namespace tandem
