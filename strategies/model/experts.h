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

// Routing that is limited to groups: all experts of a row are in `used` of `count` equal groups, which follow each
// other in the order of experts. DeepSeek-V3 takes at most 4 of 8 (arXiv:2412.19437, section 2.1.2). Count 0: no limit.
struct RoutingGroups {
  std::int64_t count = 0, used = 0;
};

struct ExpertSettings {
  Dispatch dispatch = Dispatch::all_to_all;
  // How often each expert is chosen, relative to the others, in the order of experts; empty: all equally often.
  std::vector<double> popularity{};
  // The rows that each expert computes on, as a multiple of the mean: what is more is dropped, what is less is padded.
  // 0: as many as it gets.
  double capacity = 0;
  RoutingGroups groups{};
  // Whether rows, and gradients of what experts made, go to experts as one byte an element with a scale of four bytes
  // for every 128 (arXiv:2412.19437, section 3.3.3). They come back in the type of the activations.
  bool dispatches_bytes = false;
};

// Returns the rows of the device that gets the most, as a multiple of the mean, where `devices` divide `experts` in
// their order. All devices wait for this one in every layer.
double fullest_device(const ExpertSettings& settings, std::int64_t experts, int devices);

// Returns in how many of `parts` equal parts of the experts a row uses some on average, if every choice of `used`
// experts is equally probable: parts x (1 - C(experts - experts / parts, used) / C(experts, used)).
//
// With groups, every choice of `groups.used` of them is equally probable, and then every choice among their m experts.
// A part of which s experts are in the chosen groups is missed with probability C(m - s, used) / C(m, used); the result
// is the sum over the parts of the mean of the complement over all choices of groups. The number of experts is a
// multiple of the groups; parts need not be.
double parts_used(std::int64_t experts, std::int64_t used, std::int64_t parts, const RoutingGroups& groups = {});

// Returns how many bytes an element of a row has on its way to experts, where it has `element_bytes` elsewhere.
double dispatched_bytes(const ExpertSettings& settings, double element_bytes);

// Returns the times that `routing`, which `devices` divide, reads or writes all the copies of rows for experts, apart
// from exchanges.
double passes_of(const Layer::Routing& routing, const ExpertSettings& settings, int devices);

}  // namespace tandem
