// What the records of a calibration say: overheads, rates, links and collectives.
//
// A simulated op takes its overhead and then its work, so an op's work is what its record has beyond that of an op with
// nothing to do. Where more devices work at once than there are cores, the simulator divides a node's rate among them;
// a rate is then that of the node (see DeviceRates).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/calibration/fit.h"
#include "scenarios/calibration/program.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// One run with `devices` logical devices at once.
struct Measurement {
  int devices = 1;
  int on_each = 1;  // logical devices on one physical device
  Hardware hardware{};
  Plan plan{};
  Parts parts{};
  Timeline timeline{};
  Findings findings{};

  // How many times the rate of one logical device the node's is.
  double sharing() const { return on_each > hardware.cores ? static_cast<double>(on_each) / hardware.cores : 1; }
};

struct Overheads {
  Statistic op;            // start to start of queued ops that do nothing
  Statistic launch;        // of the host, before the next op can start
  double in_record_s = 0;  // of an op's record what is no work
};
Overheads overheads_of(const Measurement& measurement);
Statistic synchronize_time(const Measurement& measurement);

// By size or shape, of one logical device; the spread is that of the times.
struct Rate {
  double per_s = 0;
  double relative_spread = 0;
};
struct Rates {
  std::map<GemmShape, Rate> gemm;
  std::map<double, Rate> memory;  // by bytes
  std::map<double, Rate> copy;
};
Rates rates_of(const Measurement& measurement);

// An entry for each type that was multiplied; that of f32, which is always there, has the rest as well.
std::vector<DeviceRates> device_rates(const Measurement& measurement, bool copies_occupy);

// A link as its copies show it, for each of the routes.
struct LinkFigures {
  Line line;
  Statistic least, most;  // times of the smallest and the largest copy
};
std::vector<LinkFigures> links_of(const Measurement& measurement);

std::vector<CollectiveSample> collective_samples(const Measurement& measurement);

}  // namespace tandem::calibration
