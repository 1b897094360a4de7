// Estimates how much longer a step takes because devices wait for the slowest of them.
#pragma once

namespace tandem::sim {

// The expected maximum of `count` independent standard normal variables; 0 for one.
double expected_maximum(int count);

// The time of the slowest of `devices` that do equal work, as a multiple of the mean time. `spread`: the standard
// deviation of the time as a share of the mean.
inline double slowest_of(int devices, double spread) {
  return 1 + spread * expected_maximum(devices);
}

}  // namespace tandem::sim
