// Measures this machine through the engine contract and writes what it finds as a topology the simulator trusts.
//
// Every figure comes from timing records of ops, copies and collectives, issued as strategy code issues them, once
// for each number of devices working at the same time. Figures are medians; the spread is the median absolute
// deviation over the median. Takes seconds (quick) to a minute; run it on an otherwise idle machine.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "topologies/topology.h"

namespace tandem {

struct CalibrateOptions {
  int max_devices = 0;  // measure 1..n devices working at once; 0: one for each hardware thread, at most 8
  bool quick = false;   // fewer repetitions
  std::function<void(std::string_view stage, int done, int total)> progress;  // may be empty
};

// One worker with one node, its measured rates and collectives. Throws UnavailableError for an engine that is not
// built, and Error for one whose clock or values do not allow a measurement.
Topology calibrate(std::string_view engine, const CalibrateOptions& options);

// What `tandem compare` uses when no topology file is given: a quick calibration, measured now.
std::shared_ptr<const Topology> machine_topology(std::string_view engine, const CalibrateOptions& options);

}  // namespace tandem
