// The coarsest equitable partition of flows and the links that they cross: flows of a class cross equally many links of
// each class, and every link of a class is crossed by equally many flows of each class. Max-min fair rates are then
// equal within each class of flows, whichever classes are under way.
//
// It is found by colour refinement. Classes are numbered in the order of their first members. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem::sim::symmetry {

// The links that each flow crosses, one list after the other.
struct Crossings {
  std::vector<std::size_t> starts{0};
  std::vector<std::uint32_t> links;

  std::size_t flows() const { return starts.size() - 1; }
  std::span<const std::uint32_t> of(std::size_t flow) const {
    return {links.data() + starts[flow], starts[flow + 1] - starts[flow]};
  }
  void close_flow() { starts.push_back(links.size()); }
};

struct Partition {
  std::vector<std::uint32_t> flow_class;
  std::vector<std::uint32_t> link_class;
};

// `flow_colours` and `link_colours` tell flows and links apart from the start. A flow may cross a link twice.
Partition equitable_partition(const Crossings& crossings, std::span<const std::uint32_t> flow_colours,
                              std::span<const std::uint32_t> link_colours);

}  // namespace tandem::sim::symmetry
