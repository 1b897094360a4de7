// Runs a scenario on an engine and returns its report.
//
// Threads: one run at a time in a process, as for Engine. Worker 0's task calls RunOptions::progress during the run.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "reports/report.h"
#include "scenarios/scenario.h"
#include "topologies/topology.h"

namespace tandem {

// What may override a scenario: the flags of the command line.
struct RunOptions {
  std::string engine;                        // empty: the scenario's
  std::shared_ptr<const Topology> topology;  // empty: the scenario's
  std::optional<DeviceType> device_type;
  std::optional<int> replicas;  // of each worker
  std::optional<int> workers;
  std::optional<int> steps;
  std::optional<std::string> cross_device_ops;
  std::optional<ValueMode> values;
  std::optional<CollectiveFidelity> collectives;
  std::map<std::string, std::string> nccl{};          // override those of the scenario
  bool graphs = false;                                // true: even where the scenario does not ask for them
  bool symmetry = true;                               // false: even where the scenario leaves it to the engine
  std::optional<std::uint64_t> schedule_seed;         // see EngineOptions::schedule_seed
  double memory_share = 1;                            // of this machine's memory: others run at the same time
  bool measures_scaling = true;                       // run simulations again, on one replica, for scaling_efficiency
  std::function<void(int step, int steps)> progress;  // called from worker 0 after each step; may be empty
};

struct RunResult {
  Report report;
  Timeline timeline;
  std::shared_ptr<const Topology> topology{};  // null: this machine, without figures
  std::vector<int> machines{};                 // of the topology, by worker
};

// Runs the scenario. Throws InputError, with the place in the file, for a scenario that the engine cannot run;
// UnavailableError for an engine or device that is not there; RunError for a run that fails.
RunResult run_scenario(const Scenario& scenario, const RunOptions& options = {});

// The functions below return what run_scenario() would use, without a run. They throw what it throws. Returns the
// topology of the options, else of the scenario. If neither names one, calibrates this machine for an engine that
// models a machine, and returns null for an engine that runs on this machine.
std::shared_ptr<const Topology> topology_for(const Scenario& scenario, const RunOptions& options);
// Returns the number of all workers of the job, parameter servers included.
int worker_count_for(const Scenario& scenario, const RunOptions& options);
// Returns the type of device to compute on: that of the options; else GPUs if the options choose an engine whose
// default device is a GPU; else that of the scenario.
DeviceType device_type_for(const Scenario& scenario, const RunOptions& options);

}  // namespace tandem
