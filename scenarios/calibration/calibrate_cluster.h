// Measures the machines of a cluster and the network between them, and writes what it finds as a topology.
//
// Each worker is a machine of its own: a process of a launch, whose engine reaches the others' devices, or a worker of
// a simulated cluster. All of them work at the same time, as in training, so that workers which share a host are
// measured with the share that each of them gets. Links and collectives are measured through the engine contract, as in
// scenarios/calibration/calibrate.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/calibration/calibrate.h"

namespace tandem {

// The rate of each of several copies that run at the same time, as measured and as simulated on the measured topology.
struct TrafficCheck {
  std::string what;  // "3 workers to one"
  double measured_bytes_per_s = 0;
  double simulated_bytes_per_s = 0;  // 0: this build cannot simulate
};

struct ClusterCalibration {
  Topology topology;
  std::vector<TrafficCheck> traffic;
};

// Measures CPU devices only. Every process of a launch must call it with the same options, and gets the same result.
// Throws what calibrate() throws, UsageError for fewer than two workers, and UnavailableError for an engine whose
// workers do not reach each other's devices.
ClusterCalibration calibrate_cluster(std::string_view engine, int workers, const CalibrateOptions& options);

}  // namespace tandem
