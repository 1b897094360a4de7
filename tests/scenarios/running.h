// Scenarios made and run in tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/run/runner.h"
#include "topologies/generators/cluster.h"

namespace tandem {

// Reads a scenario without its first line, which says the version. Files that it names lie beside the good scenarios.
inline Scenario read_scenario(const std::string& text) {
  return parse_scenario("schema_version: 1\n" + text, TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml");
}

// Returns the same job on simulated GPUs that carry values. More replicas than GPUs share them, as logical devices.
inline Scenario on_simulated_gpus(Scenario scenario) {
  scenario.engine = {.name = "sim", .values = ValueMode::real, .collectives = {}};
  scenario.devices.type = DeviceType::gpu;
  scenario.topology = std::make_shared<const Topology>(make_cluster("dgx-a100", 1));
  return scenario;
}

// Runs a scenario without measuring how it scales; on `topology` if there is one.
inline Report run_unscaled(Scenario scenario, std::shared_ptr<const Topology> topology = nullptr) {
  if (topology) scenario.topology = std::move(topology);
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options).report;
}

inline void expect_equal_losses(const std::vector<double>& losses, const std::vector<double>& reference) {
  ASSERT_EQ(losses.size(), reference.size());
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(losses[step] / reference[step], 1, 1e-5) << "step " << step;
  }
}

}  // namespace tandem
