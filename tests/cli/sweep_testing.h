// Sweeps of small simulated jobs, alone and on several ranks.
#pragma once

#include <string>

#include "tests/cli/ranks_testing.h"

namespace tandem {

class Sweep : public CommandOnRanks {
 protected:
  // Simulated GPUs; `layers` decides how long a point takes.
  std::string write_sweep(const std::string& sweep, int layers = 2, int steps = 2) const {
    return write("small.yaml",
                 "schema_version: 1\nworkload: {kind: layers, model: gpt, batch: 64, dtype: bf16, sizes: {hidden: 64, "
                 "heads: 4, tokens: 32, layers: " +
                     std::to_string(layers) +
                     "}}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim}\n"
                     "topology: {cluster: {node: hgx-h100, workers: 2}}\n"
                     "devices: {type: gpu, workers: 1, per_worker: 4}\nsteps: " +
                     std::to_string(steps) + "\nwarmup_steps: 1\nsweep:\n" + sweep);
  }
  std::string write_small() const {
    return write_sweep(
        "  values: {devices.workers: [1, 2], workload.bucket_bytes: [1MB, 25MB], workload.dtype: [bf16]}\n");
  }
  // Some dozens of points that take tens of milliseconds each.
  std::string write_long() const {
    return write_sweep("  values: {workload.batch: {from: 64, to: 142, step: 2}}\n", 24, 6);
  }
};

}  // namespace tandem
