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
  std::map<std::string, std::string> nccl{};          // over the scenario's
  bool graphs = false;                                // true: also where the scenario does not ask for them
  bool symmetry = true;                               // false: also where the scenario leaves it to the engine
  std::optional<std::uint64_t> schedule_seed;         // see EngineOptions::schedule_seed
  bool measures_scaling = true;                       // run simulations again, on one replica, for scaling_efficiency
  std::function<void(int step, int steps)> progress;  // called from worker 0 after each step; may be empty
};

struct RunResult {
  Report report;
  Timeline timeline;
  std::shared_ptr<const Topology> topology{};  // null: this machine, without figures
  std::vector<int> machines{};                 // of the topology, by worker
};

// Throws InputError, with the place in the file, for a scenario that the engine cannot run; UnavailableError for an
// engine or device that is not there; RunError for a run that fails.
RunResult run_scenario(const Scenario& scenario, const RunOptions& options = {});

// What run_scenario() would use, found without a run. All of these throw as it does.
// The topology of the options, else of the scenario. If neither names one: this machine, calibrated now, for an engine
// that models a machine, and null for one that is this machine.
std::shared_ptr<const Topology> topology_for(const Scenario& scenario, const RunOptions& options);
// The number of all workers of the job, parameter servers included.
int worker_count_for(const Scenario& scenario, const RunOptions& options);
// The type of device to compute on: that of the options; else GPUs if the options choose an engine whose default device
// is a GPU; else that of the scenario.
DeviceType device_type_for(const Scenario& scenario, const RunOptions& options);

}  // namespace tandem
