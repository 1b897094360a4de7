// The bounds that the peak figures of a device set for training on it. A measured throughput that is higher contradicts
// them.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario/scenario.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// What one unit of a workload, such as an example, takes of a device at least.
struct LeastWork {
  double flops = 0;
  double bytes = 0;          // that no cache holds
  DType dtype = DType::f32;  // whose peak rate the flops have at most
};

// Adds up the work that a simulation of the workload does in a step. Convolutions that may be computed by Winograd's
// algorithm count as a quarter of their flops.
LeastWork least_work_of(const WorkloadSettings& workload, const Timeline& timeline, int step);

// Returns what a throughput contradicts, in words, if the device would need more than its peak rate or more than its
// memory's bandwidth for it. Returns nothing if there is no such contradiction, and for figures that the device does
// not state. Figures of devices are rounded, so that 5 % more are accepted.
std::optional<std::string> contradiction_of(const LeastWork& work, double per_second, const DeviceModel& device);

}  // namespace tandem::calibration
