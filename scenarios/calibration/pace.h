// How fast this machine works now, by a few known ops.
//
// The same program may take half as long again a few seconds later: a virtual machine's processors may have been moved
// to others, which share less of a cache, or share a core with those of other guests. A prediction holds for the pace
// at which the machine was calibrated, unless it is corrected by at_pace().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// Times in seconds; 0: not measured.
struct MachinePace {
  double product_s = 0;   // two small matrix products with what was used a step ago
  double exchange_s = 0;  // an all-reduce between two cores
  double update_s = 0;    // packing, unpacking and an update; for both, 20 MiB are in use
  auto operator<=>(const MachinePace&) const = default;
};

// Measures the pace of CPU devices, up to `devices` of them, in some 50 ms. A pace may last for a tenth of a second or
// for minutes: what computes for seconds has the mean of several. `engine` runs on this machine.
MachinePace measure_pace(std::string_view engine, int devices);

// The pace at which the machine of a topology was measured, as measure_pace() would find it with so many devices. That
// of products and exchanges is among the conditions of the topology's figures, that of updates follows from these.
std::optional<MachinePace> pace_of(const Topology& topology, int devices);
void set_pace(Topology& topology, const MachinePace& pace);

// Returns how far the two paces are apart, as a share of what is usual from one second to the next: 10 % for products,
// 40 % for the others. Above 1, the machine has another pace.
double distance_between(const MachinePace& before, const MachinePace& now);
MachinePace mean_of(const std::vector<MachinePace>& paces);  // not empty (TANDEM_CHECK)
// The lesser times of both.
MachinePace quicker_of(const MachinePace& before, const MachinePace& after);
// Returns "products take 15 % longer, exchanges between cores 98 % longer".
std::string change_text(const MachinePace& before, const MachinePace& now);

// Returns a machine that was measured at the pace `usual` as it is at the pace `now`: all times of its CPU devices by
// the ratio for products, those of collectives by that for exchanges, and those of what was used a step ago by that for
// updates.
Topology at_pace(const Topology& topology, const MachinePace& usual, const MachinePace& now);

}  // namespace tandem
