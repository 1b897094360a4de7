// How fast this machine works now, by a few known ops.
//
// The same program may take half as long again a few seconds later: a virtual machine's processors may have been moved
// to others, which share less of a cache, or share a core with those of other guests. A prediction holds for the pace
// at which the machine was calibrated.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace tandem {

// Times in seconds; 0: not measured.
struct MachinePace {
  double product_s = 0;   // one matrix product, while all cores multiply
  double exchange_s = 0;  // an all-reduce between two cores
  auto operator<=>(const MachinePace&) const = default;
};

// Measures the pace of CPU devices, up to `devices` of them, in some 30 ms. `engine` runs on this machine.
MachinePace measure_pace(std::string_view engine, int devices);

// The pace at which the machine of a topology was measured, among the conditions of its figures.
std::optional<MachinePace> pace_of(const Topology& topology);
void set_pace(Topology& topology, const MachinePace& pace);

// Returns how far the two paces are apart, as a share of what is usual from one minute to the next: 10 % for products
// and 40 % for exchanges. Above 1, predictions for the one say nothing about the other.
double distance_between(const MachinePace& before, const MachinePace& now);
// Returns "products take 15 % longer, exchanges between cores 98 % longer".
std::string change_text(const MachinePace& before, const MachinePace& now);

}  // namespace tandem
