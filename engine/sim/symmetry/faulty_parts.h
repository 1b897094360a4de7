// What of a cluster faults concern, for simulations in which some workers represent others.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/faults/faults.h"

namespace tandem::sim {

// The links whose rate changes. Links with equal numbers, which begin with 1, have equal shares of their own rates at
// all times.
struct FaultyLink {
  double least_share = 1;
  int number = 0;
};
using FaultyLinks = std::unordered_map<LinkIndex, FaultyLink>;
FaultyLinks faulty_links(const EngineOptions& options);

// Returns 0 for each worker that has nothing to do with any fault, and a number of its own for each other: one with
// slow devices, one that is lost, one whose machine has a slow link.
std::vector<int> faulty_workers(const EngineOptions& options);

// Whether devices of one worker have different faults.
bool devices_differ_by_faults(const EngineOptions& options);

}  // namespace tandem::sim
