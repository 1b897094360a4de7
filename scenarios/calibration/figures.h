// Derives overheads, rates, links and collectives from the records of a calibration.
//
// A simulated op takes the time of its overhead and then of its work, so the work of an op is the time by which its
// record is longer than that of an op with nothing to do. If more devices work at the same time than there are cores,
// the simulator divides the rate of a node among them; a rate is then that of the node (see DeviceRates).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/calibration/fit.h"
#include "scenarios/calibration/program.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// One run with `devices` logical devices that work at the same time.
struct Measurement {
  int devices = 1;
  int on_each = 1;  // logical devices on one physical device
  bool is_of_one_process = false;
  Hardware hardware{};
  Plan plan{};
  Parts parts{};
  Timeline timeline{};
  Findings findings{};

  // Adds what another run of the same program with as many devices has found.
  void add(Measurement&& pass);
  // Returns the rate of the node divided by that of one logical device.
  double sharing() const { return on_each > hardware.cores ? static_cast<double>(on_each) / hardware.cores : 1; }
};

struct Overheads {
  Statistic op;            // from start to start of queued ops that do nothing
  Statistic launch;        // host time before the next op can start
  double in_record_s = 0;  // the part of an op's record that is not work
};
Overheads overheads_of(const Measurement& measurement);  // without records where it was measured without
// Returns the overheads of ops that are launched as graphs, or nothing where they were not measured.
std::optional<Overheads> graph_overheads_of(const Measurement& measurement);
Statistic synchronize_time(const Measurement& measurement);
// Returns the time from one stream's op to the next one of another stream that waits for it, or nothing where it was
// not measured.
std::optional<Statistic> hand_over_time(const Measurement& measurement);
// Returns the times until a sleeping stream begins with an op, by how long a core was idle, one for each of kIdleOps,
// or none where they were not measured.
struct MeasuredWakeUp {
  double idle_s = 0;
  Statistic time;
};
std::vector<MeasuredWakeUp> wake_up_times(const Measurement& measurement);

// A rate of one logical device at a size or shape. The spread is that of the times.
struct Rate {
  double per_s = 0;
  double relative_spread = 0;
};
struct Rates {
  std::map<GemmShape, Rate> gemm;
  std::map<DType, std::map<double, Rate>> memory;  // by bytes; f32 always
  std::map<double, Rate> copy;
  std::map<std::string, std::map<double, Rate>> kernels;  // by name and bytes
};
Rates rates_of(const Measurement& measurement);

// Returns the rates by the memory in use, by rising bytes; none where they were not measured.
std::vector<InUseRates> in_use_rates(const Measurement& measurement);

// Returns one entry for each type that was multiplied. The entry of f32, which always exists, also has the other rates.
std::vector<DeviceRates> device_rates(const Measurement& measurement, bool copies_occupy);

// The figures of a route's link, from its copies.
struct LinkFigures {
  Line line;
  Statistic least, most;  // times of the smallest and the largest copy
};
std::vector<LinkFigures> links_of(const Measurement& measurement);

// The times of a step's copies in seconds, by bytes: those on devices of one worker, or all.
using CopyTimes = std::map<double, std::vector<double>>;
CopyTimes copies_of(const std::vector<Record>& records, int step, std::optional<int> worker = {});

std::vector<CollectiveSample> collective_samples(const Measurement& measurement);

}  // namespace tandem::calibration
