// Times one collective over a range of sizes on any engine, as nccl-tests does: all devices of the job form one group,
// and for each size several calls are issued back to back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "reports/nccl_tests/collective_table.h"
#include "scenarios/collectives/collective_sweep.h"

namespace tandem {

// The devices that take part: `devices` of each of `workers` machines.
struct CollectiveJob {
  std::string engine{};
  std::shared_ptr<const Topology> topology{};  // for engines that model a machine
  DeviceType device_type = DeviceType::cpu;
  int workers = 1;
  int devices = 1;
  std::optional<CollectiveFidelity> collectives{};
  std::map<std::string, std::string> nccl{};  // EngineOptions::nccl
};

struct CollectiveResult {
  CollectiveTable table{};  // one row for each size, each once, in the order of `sizes`
  bool deterministic = false;
  std::vector<DeviceId> devices{};  // of rank 0, 1, ...
  std::string device_model{};       // "NVIDIA H100 SXM5"; empty: unknown
  std::map<std::string, std::string> settings{};
  std::vector<std::string> notes{};
  std::set<std::string> consulted{};  // as in Timeline
};

// Runs the sweep. Of a model, at most 20 calls of a size are simulated, from which the mean of more follows. Worker 0
// calls `progress`, which may be empty, now and then with the number of timed calls. Throws UnavailableError for
// devices that the engine lacks, SizeError for what this machine is too small for, and what the engine
// throws.
CollectiveResult run_collective(const CollectiveJob& job, const CollectiveSweep& sweep,
                                const std::function<void(std::int64_t done, std::int64_t total)>& progress = {});

// Returns the bytes of the sizes that run_collective() times, in its order.
std::vector<double> timed_sizes(const CollectiveJob& job, const CollectiveSweep& sweep);

// Returns the number of devices of the job's type that a machine has, or 0 where it is unknown.
int devices_of_machine(const CollectiveJob& job);

}  // namespace tandem
