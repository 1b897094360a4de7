// Measures this machine through the engine contract and writes what it finds as a topology the simulator trusts.
//
// Every figure comes from timing records of ops, copies and collectives, issued as strategy code issues them, once
// for each number of devices working at the same time. Figures are medians, those of a CPU's rates lower quartiles over
// several passes; the spread is the median absolute deviation over the median. Takes seconds (quick) to minutes; run it
// on an otherwise idle machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/device.h"
#include "engine/timeline.h"
#include "topologies/topology.h"

namespace tandem {

struct CalibrateOptions {
  // Measures 1..n devices that work at the same time; more than the machine has share its physical ones. 0: every GPU,
  // or four CPU devices for each core; at most 8.
  int max_devices = 0;
  bool quick = false;                          // fewer sizes and repetitions
  std::optional<DeviceType> device_type{};     // empty: GPUs where the engine has some, else CPUs
  std::optional<double> warm_up_s{};           // of GPUs, with products; empty: 5 s (quick) or 10 s
  std::vector<DType> dtypes{};                 // of matrix products; empty: f32 (quick) or all of the engine's
  std::shared_ptr<const Topology> topology{};  // the machine that an engine models; null for others
  std::function<void(std::string_view stage, int done, int total)> progress{};  // may be empty
  std::vector<GpuUse>* gpus = nullptr;  // gets what the drivers of GPUs report about each run; may be null
};

// Measures one worker: its processor, its GPUs if these are asked for, the links between them, and collectives. Throws
// UnavailableError with the reason for an engine that is not built or lacks the devices.
Topology calibrate(std::string_view engine, const CalibrateOptions& options);

// Calibrates this machine quickly, as the topology of a run or comparison that names none.
std::shared_ptr<const Topology> machine_topology(std::string_view engine, const CalibrateOptions& options);

}  // namespace tandem
