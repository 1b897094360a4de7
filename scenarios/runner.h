// Runs a scenario on an engine and returns its report.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "reports/report.h"
#include "scenarios/scenario.h"
#include "topologies/topology.h"

namespace tandem {

// What the command line may override.
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
  bool graphs = false;                                // adds EngineSettings::graphs
  std::optional<std::uint64_t> schedule_seed;         // of the order of tasks; engines with a seeded schedule only
  bool measures_scaling = true;                       // a simulation's scaling_efficiency, which takes a second run
  std::function<void(int step, int steps)> progress;  // called from worker 0 after each step; may be empty
};

struct RunResult {
  Report report;
  Timeline timeline;
};

// Throws InputError for a scenario the engine cannot run (a field it refuses, with the scenario's position),
// UnavailableError, RunError.
RunResult run_scenario(const Scenario& scenario, const RunOptions& options = {});

// What run_scenario would run on, without a run; they throw as it does. The topology is the one of the options or the
// scenario, else this machine, calibrated now, where the engine simulates one; null where it does not.
Capabilities capabilities_for(const Scenario& scenario, const RunOptions& options);
std::shared_ptr<const Topology> topology_for(const Scenario& scenario, const RunOptions& options);

}  // namespace tandem
