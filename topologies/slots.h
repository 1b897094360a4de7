// Numbers the nodes that one search may visit: those of the machines at the two ends of the route, and those that were
// added one by one, such as switches of the fabric.
#pragma once

#include <cstddef>

#include "topologies/topology.h"

namespace tandem {

class Slots {
 public:
  explicit Slots(const Topology& topology)
      : all_(topology.machine_nodes()), size_(topology.nodes_of_machine()), nodes_(topology.node_count()) {}

  void set_ends(NodeIndex from, NodeIndex to) {
    if (from < all_) home_ = from / size_ * size_;
    if (to < all_) away_ = to / size_ * size_;
  }
  std::size_t count() const { return 2 * std::size_t{size_} + nodes_ - all_; }
  std::size_t of(NodeIndex node) const {
    if (node >= all_) return 2 * std::size_t{size_} + node - all_;
    return node - home_ < size_ ? node - home_ : size_ + (node - away_);  // unsigned: nodes before home_ are far
  }

 private:
  NodeIndex all_, size_;
  std::size_t nodes_;
  NodeIndex home_ = 0, away_ = 0;  // the first nodes of the machines
};

}  // namespace tandem
