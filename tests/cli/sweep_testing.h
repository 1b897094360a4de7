// Sweeps of small simulated jobs, alone and on several ranks.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace tandem {

class Sweep : public CommandLine {
 protected:
  void TearDown() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"})
      unsetenv(name);
    CommandLine::TearDown();
  }

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

  static void be_rank(int rank, int count) {
    setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    setenv("OMPI_COMM_WORLD_SIZE", std::to_string(count).c_str(), 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank).c_str(), 1);
  }
  Outcome ranked(int rank, int count, const std::vector<std::string>& arguments) const {
    be_rank(rank, count);
    return tandem(arguments);
  }
  // Runs `tandem sweep small.yaml` with more arguments on so many ranks, and ends it after so many seconds. Exit code
  // 77: this machine launches no ranks.
  Outcome launched(int ranks, const std::string& arguments, double at_most_s = 600) const {
    const std::string command = fmt::format("cd {} && timeout --signal=TERM {} " TANDEM_SOURCE_DIR
                                            "/tests/mpi/on_ranks.sh mpirun -n {} " TANDEM_BINARY
                                            " sweep small.yaml {} >stdout.txt 2>stderr.txt </dev/null",
                                            folder().string(), at_most_s, ranks, arguments);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("stdout.txt"), read("stderr.txt")};
  }
  int lines_of(const std::string& name) const {
    const std::string text = read(name);
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
};

}  // namespace tandem
