// The bounds that the links of a topology set for collectives. A measured collective that is faster contradicts them; a
// predicted one cannot be faster.
#pragma once

#include <optional>
#include <string>

#include "engine/collective.h"
#include "topologies/topology.h"

namespace tandem::calibration {

// A measurement that is faster than the links. Both bandwidths are in bytes/s in one direction.
struct Contradiction {
  double carried = 0;  // bandwidth that the measured time would need
  double limit = 0;    // bandwidth of the links
  std::string links;   // "the links of w0.gpu0", "the network ports of machine 0"
};

// Compares a time with two bounds that hold for every algorithm. What a GPU sends and receives passes its links to
// other GPUs and to NVSwitches, or its links to the host where it has no others. What a machine, or all machines that
// share an NVSwitch, send to others passes their network ports. Switches that reduce (NVLink SHARP from compute
// capability 9.0 on, SHARP of InfiniBand) are taken into account: a GPU then sends its buffer of an all_reduce only
// once. Figures of links are rounded, so that 5 % more are accepted.
class LinkLimits {
 public:
  explicit LinkLimits(const Topology& topology);

  // Returns the contradiction between a time and the links. Returns nothing if there is none, or if the topology has no
  // links that set a bound (only a machine's processor).
  std::optional<Contradiction> contradiction(CollectiveKind kind, int devices, int nodes, double bytes,
                                             double time_s) const;

  struct Limit {
    double bytes_per_s = 0;
    std::string links;
  };
  // Returns the bus bandwidth (as nccl-tests counts it) that no algorithm exceeds, unless switches of the network
  // reduce. Returns nothing if the topology has no links that set a bound.
  std::optional<Limit> bus_bandwidth(CollectiveKind kind, int devices, int nodes) const;

 private:
  int domains_of(int nodes) const;  // that so many machines fill

  // The rate of the GPU with the slowest links: as stated, and by the datasheet. A machine states what NCCL plans with,
  // which is what collectives reach; a measurement contradicts its links only beyond the datasheet.
  std::optional<Limit> device_, device_most_;
  std::optional<Limit> ports_;  // of the machine, or NVLink domain, with the slowest ports
  bool switches_reduce_ = false;
  int nvlink_domain_ = 1;  // machines that need no network between them
};

}  // namespace tandem::calibration
