// The cores of the nodes and the work on them. Nodes share nothing, so their work needs no SimGrid, whose scan of all
// running actions and activity for each op would cost far more than the arithmetic below.
//
// Each piece of work runs on at most one core. If a node has more pieces of work than cores, they share the cores
// evenly; work that cannot use its share leaves the rest to the others (max-min fairness). Whenever work starts or
// ends, the node's rates and the dates at which its work ends are computed anew.
//
// Pure arithmetic: the caller states dates and gets back what has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/sim/base/date_heap.h"
#include "engine/sim/platform.h"

namespace tandem::sim {

class Processors {
 public:
  using Then = std::function<void()>;

  explicit Processors(std::span<const HostSpec> nodes);

  // Adds work that takes `seconds` (more than 0) on an undivided core, and never less than `alone_s`. It starts at the
  // next settle().
  void add(NodeIndex node, double seconds, double alone_s, Then then);
  // Brings the nodes that have changed up to the present, and predicts the ends of their work.
  void settle(double now_s);
  // Returns the date of the next end, after a settle(); infinity if nothing runs.
  double next_end_s();
  // Settles, removes the work that ends now, and appends its callbacks to `ended`, on each node those of the newest
  // work first.
  void take_ended(double now_s, std::vector<Then>& ended);

 private:
  struct Job {
    double left_ns = 0;        // of an undivided core
    double most_ns_per_s = 0;  // the rate that it cannot exceed
    double ns_per_s = 0;       // its rate
    double end_s = 0;          // at this rate
    Then then{};
  };
  struct Node {
    double cores = 0;
    std::vector<Job> jobs;         // in the order in which they started
    double present_s = 0;          // the date as of which left_ns holds
    std::uint32_t prediction = 0;  // number of the latest prediction
    bool has_changed = false;
  };
  struct Prediction {
    std::uint32_t node = 0;  // in nodes_
    std::uint32_t number = 0;
  };

  void mark(std::uint32_t index);
  void settle(std::uint32_t index, double now_s);
  static void share(Node& node);
  bool is_outdated(const Prediction& end) const { return nodes_[end.node].prediction != end.number; }

  std::vector<std::uint32_t> index_;  // by NodeIndex
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> changed_;
  DateHeap<Prediction> ends_;  // the next end of each node, and some outdated ones
};

}  // namespace tandem::sim
