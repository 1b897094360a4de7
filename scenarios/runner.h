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
  std::optional<int> replicas;
  std::optional<int> steps;
  std::optional<std::string> cross_device_ops;
  std::optional<Values> values;
  std::optional<CollectiveFidelity> collectives;
  std::function<void(int step, int steps)> progress;  // called from worker 0 after each step; may be empty
};

struct RunResult {
  Report report;
  Timeline timeline;
};

// Throws InputError for a scenario the engine cannot run (a field it refuses, with the scenario's position),
// UnavailableError, RunError.
RunResult run_scenario(const Scenario& scenario, const RunOptions& options = {});

}  // namespace tandem
