// Finds the cost of a route through a large fabric by searching from both of its ends until the searches meet in the
// middle. Each visits only the surroundings of its end; one search from end to end would visit most of the fabric.
#pragma once

#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "topologies/arcs.h"
#include "topologies/slots.h"

namespace tandem {

class MeetingSearch {
 public:
  static constexpr Picoseconds kNoRoute = std::numeric_limits<Picoseconds>::max();

  // Both must outlive this.
  MeetingSearch(const Topology& topology, const Arcs& arcs);

  // Returns whether it can search between these nodes: NICs or processors of different workers, in a topology without
  // one-way links.
  bool knows(NodeIndex from, NodeIndex to) const;
  // Returns the cost of the cheapest route, over network links alone if `keeps_to_network`; kNoRoute where there is
  // none. Crosses no GPU and no third worker.
  Picoseconds run(NodeIndex from, NodeIndex to, bool keeps_to_network = false);
  // Returns, after run(), a lower bound of the cost from `node` to the end. It is exact near the end.
  Picoseconds rest_at_least(NodeIndex node) const;
  std::uint64_t visited_count() const { return visited_; }

 private:
  struct Visit {
    std::uint64_t search = 0;  // which search wrote the rest
    Picoseconds cost = 0;
    bool done = false;
  };
  struct Side {
    using Open = std::pair<Picoseconds, NodeIndex>;
    std::vector<Visit> visits{};  // by slot
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open{};
  };
  void begin(Side& side, NodeIndex at);
  static Picoseconds next_cost(const Side& side) { return side.open.empty() ? kNoRoute : side.open.top().first; }
  void visit_next(Side& side, const Side& other);
  void expand(Side& side, const Side& other, NodeIndex node, int worker);

  const Topology& topology_;
  const Arcs& arcs_;
  Slots slots_;
  bool has_one_way_ = false;
  Side front_, back_;
  std::uint64_t search_ = 0;
  int home_ = 0, away_ = 0;
  bool keeps_to_network_ = false;
  Picoseconds best_ = kNoRoute;
  std::uint64_t visited_ = 0;
};

}  // namespace tandem
