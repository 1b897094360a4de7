// How rows reach the experts that a router chooses for them, and how many rows each device gets. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/model/model.h"

namespace tandem {

// How rows reach the devices that have their experts, and come back.
// all_to_all: a copy for each expert that a row uses. Kernels order the copies by expert before they go and, on devices
// with several experts, once more when they have arrived.
// deepep: a copy for each device that has some of these experts, ordered by a kernel where it arrives, as DeepEP does.
// hybridep: the same, and the kernels of the exchange order the rows, as HybridEP does.
// Across a network the last two send a copy to each group of devices that need none among them, where it is passed on.
enum class Dispatch : std::uint8_t { all_to_all, deepep, hybridep };

struct ExpertSettings {
  Dispatch dispatch = Dispatch::all_to_all;
  // How often each expert is chosen, relative to the others, in the order of experts; empty: all equally often.
  std::vector<double> popularity{};
  // The rows that each expert computes on, as a multiple of the mean: what is more is dropped, what is less is padded.
  // 0: as many as it gets.
  double capacity = 0;
};

// Returns the rows of the device that gets the most, as a multiple of the mean, where `devices` divide `experts` in
// their order. All devices wait for this one in every layer.
double fullest_device(const ExpertSettings& settings, std::int64_t experts, int devices);

// Returns how many of `parts` equal groups of experts a row uses on average, if every choice of `used` experts is
// equally probable: parts x (1 - C(experts - experts / parts, used) / C(experts, used)).
double parts_used(std::int64_t experts, std::int64_t used, std::int64_t parts);

// Returns the times that `routing`, which `devices` divide, reads or writes all the copies of rows for experts, apart
// from exchanges.
double passes_of(const Layer::Routing& routing, Dispatch dispatch, int devices);

}  // namespace tandem
