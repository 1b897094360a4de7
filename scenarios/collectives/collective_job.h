// Times one collective over a range of sizes on any engine, the way nccl-tests does: all devices of the job form one
// group, and for each size a number of calls is issued back to back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "reports/collective_table.h"

namespace tandem {

struct CollectiveSweep {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  // In nccl-tests' definition: the larger of a rank's input and output. Each is rounded down to whole elements, and for
  // collectives whose ranks hold parts to whole elements of each part; what is left of 0 bytes is not timed.
  std::vector<std::int64_t> sizes{};
  int warmup = 5;
  int iterations = 20;
  bool checks_values = true;  // before the timed calls, where the engine carries values
};

// The devices that take part: `devices` of each of `workers` machines.
struct CollectiveJob {
  std::string engine{};
  std::shared_ptr<const Topology> topology{};  // of engines that model a machine
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
  std::string device_model{};       // "NVIDIA H100 SXM5"; empty: not known
  std::map<std::string, std::string> settings{};
  std::vector<std::string> notes{};
};

// Throws UnavailableError for devices or element types that the engine lacks, and what the engine throws.
// `progress` is called from worker 0 after each size; may be empty.
CollectiveResult run_collective(const CollectiveJob& job, const CollectiveSweep& sweep,
                                const std::function<void(int done, int total)>& progress = {});

// The number of devices of a type that a machine has; 0 where it is not known.
int devices_of_machine(const CollectiveJob& job);

}  // namespace tandem
