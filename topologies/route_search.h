// Finds all cheapest ways between two nodes. topologies/routing.h says how a route is chosen among them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "topologies/meeting_search.h"

namespace tandem {

// The cheapest ways from the start to the end, which is state 0. Several equally cheap ways may lead into a state.
struct Ways {
  static constexpr std::uint32_t kStart = std::numeric_limits<std::uint32_t>::max();
  struct Way {
    Edge edge;
    std::uint32_t from = kStart;  // a state
  };
  std::vector<std::uint32_t> starts{0};  // by state, in `ways`
  std::vector<Way> ways;                 // in the order in which a choice counts them

  // Walks back from the end to the start, choosing among equal ways by a hash. Calls `visit` with the index in `ways`
  // of each that it takes.
  template <typename Visit>
  void walk(std::uint64_t hash, Visit&& visit) const {
    std::uint32_t state = 0;
    while (state != kStart) {
      hash = mixed(hash);
      const std::uint32_t count = starts[state + 1] - starts[state];
      const std::size_t way = starts[state] + (count == 1 ? 0 : hash % count);
      visit(way);
      state = ways[way].from;
    }
  }
  static std::uint64_t mixed(std::uint64_t x) {  // the finalizer of splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

// Dijkstra's search over states: a node, and whether it is a GPU reached by one NVLink hop from the start, the only
// GPUs that may be crossed. The arrays are allocated once; a search touches what it visits. Through fabrics it visits
// only nodes that may be on a cheapest route, which changes neither those routes nor their order.
class RouteSearch {
 public:
  RouteSearch(const Topology& topology, const Arcs& arcs);

  enum class Within : std::uint8_t { topology, machine };
  // Returns the ways between two different nodes, or nothing when there are none. Within::machine crosses only nodes of
  // the machine that both are part of.
  std::optional<Ways> find(NodeIndex from, NodeIndex to, Within within = Within::topology);
  // The cost of the ways found last.
  Picoseconds cost() const { return cost_; }
  std::uint64_t visited_count() const { return visited_ + meeting_.visited_count(); }

 private:
  using State = std::uint32_t;
  static constexpr std::uint32_t kNone = Ways::kStart;

  struct Visit {
    std::uint64_t search = 0;  // which search wrote the rest
    Picoseconds cost = 0;
    std::uint32_t first_step = kNone;
    std::uint32_t number = kNone;  // in the ways found
    bool done = false;
  };
  // One of the equally cheap ways into a state.
  struct Step {
    State from;
    Edge edge;
    std::uint32_t next;
  };
  using Open = std::pair<Picoseconds, State>;

  static NodeIndex node_of(State state) { return state / 2; }
  static bool is_crossable(State state) { return state % 2 == 1; }
  Visit& visit_of(State state) { return visits_[2 * slots_.of(node_of(state)) + state % 2]; }
  bool is_nvlink(const Arc& arc) const { return topology_.link_model(arc.edge.link).kind == LinkKind::nvlink; }
  bool is_gpu(NodeIndex node) const { return topology_.kind(node) == NodeKind::gpu; }

  State run(NodeIndex from, NodeIndex to, Within within);
  void expand(State state, Picoseconds cost, int worker);
  bool may_leave(State state, const Arc& arc) const;
  bool may_be_on_route(NodeIndex node, Picoseconds cost) const;
  void reach(State state, Picoseconds cost, State from, Edge edge);
  Ways ways_to(State end);

  const Topology& topology_;
  const Arcs& arcs_;
  MeetingSearch meeting_;
  Slots slots_;
  std::vector<Visit> visits_;  // by slot and crossability
  std::vector<Step> steps_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  State start_ = 0;
  NodeIndex to_ = 0;
  Picoseconds cost_ = 0;
  bool avoids_network_ = false;    // both ends are in one machine
  bool keeps_to_network_ = false;  // both are NICs of different machines
  bool is_bounded_ = false;
  Picoseconds bound_ = 0;  // of the whole route, where is_bounded_
  std::uint64_t search_ = 0;
  std::uint64_t visited_ = 0;
};

}  // namespace tandem
