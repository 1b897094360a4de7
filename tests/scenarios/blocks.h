// A model of eight equal blocks on simulated GPUs whose links cost next to nothing, for tests of what a strategy
// computes and sends.
#pragma once

#include <string>

#include "tests/scenarios/running.h"

namespace tandem {

// `more` continues the workload.
inline RunResult run_blocks(const std::string& strategy, int batch, int devices, const std::string& more = "",
                            const std::string& engine = "{name: sim}") {
  const Scenario scenario = read_scenario(
      "workload: {kind: layers, model: files/blocks.yaml, batch: " + std::to_string(batch) + ", dtype: f16" + more +
      "}\nstrategy: " + strategy + "\nengine: " + engine +
      "\ntopology: {cluster: {node: dgx-a100, workers: 1, overrides: {nvlink: {bandwidth: 1000000GB/s, latency: "
      "0.1ns}}}}\ndevices: {type: gpu, per_worker: " +
      std::to_string(devices) + "}\nsteps: 2\nwarmup_steps: 1\n");
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options);
}

// Runs the same program with threads as devices, for which the sizes are small.
inline Report run_blocks_for_real(const std::string& strategy, int batch, const std::string& more = "") {
  const Scenario scenario = read_scenario(
      "workload: {kind: layers, model: files/blocks.yaml, sizes: {tokens: 4, hidden: 32, heads: 8}, batch: " +
      std::to_string(batch) + ", dtype: f32, optimizer: adam" + more + "}\nstrategy: " + strategy +
      "\nengine: {name: cpu}\ndevices: {type: cpu, per_worker: 4}\nsteps: 3\nwarmup_steps: 1\n");
  return run_unscaled(scenario);
}

// Returns the median, in nanoseconds.
inline double step_of(const RunResult& result) {
  return static_cast<double>(result.report.summary.step_time.median);
}

// Returns the flops of products and convolutions in a step: everything else has fewer flops than bytes.
inline double flops(const RunResult& result) {
  double sum = 0;
  for (const Record& record : result.timeline.records) {
    if (record.step == 1 && record.flops > record.bytes) sum += record.flops;
  }
  return sum;
}

}  // namespace tandem
