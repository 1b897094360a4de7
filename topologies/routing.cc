#include "topologies/routing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <list>
#include <queue>
#include <unordered_map>

#include "topologies/base/error.h"
#include "topologies/meeting_search.h"

namespace tandem {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::uint64_t mixed(std::uint64_t x) {  // the finalizer of splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Key {
  NodeIndex from;
  NodeIndex to;
  std::uint64_t flow;
  bool operator==(const Key&) const = default;
};

std::uint64_t hash_of(const Key& key) {
  return mixed(mixed((std::uint64_t{key.from} << 32) | key.to) ^ key.flow);
}

struct KeyHash {
  std::size_t operator()(const Key& key) const { return hash_of(key); }
};

class RouteCache {
 public:
  explicit RouteCache(std::size_t capacity) : capacity_(std::max<std::size_t>(1, capacity)) {}

  std::shared_ptr<const Route> find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->second;
  }

  void insert(const Key& key, std::shared_ptr<const Route> route) {
    if (index_.size() == capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(route));
    index_.emplace(key, entries_.begin());
  }

 private:
  using Entries = std::list<std::pair<Key, std::shared_ptr<const Route>>>;
  std::size_t capacity_;
  Entries entries_;  // most recently used first
  std::unordered_map<Key, Entries::iterator, KeyHash> index_;
};

Route empty_route() {
  return {.bandwidth_bytes_per_s = std::numeric_limits<double>::infinity()};
}

// Dijkstra's search over states: a node, and whether it is a GPU reached by one NVLink hop from the start,
// the only GPUs that may be crossed. The arrays are allocated once; a search touches what it visits. Through fabrics it
// visits only nodes that may be on a cheapest route, which changes neither those routes nor their order.
class Search {
 public:
  explicit Search(const Topology& topology)
      : topology_(topology), arcs_(topology), meeting_(topology, arcs_), visits_(2 * topology.node_count()) {}

  // Returns the cheapest route, or nothing when there is none.
  std::optional<Route> find(const Key& key) {
    const State end = run(key.from, key.to);
    if (end == kNone) return std::nullopt;
    return trace(end, key);
  }

  std::uint64_t visited_count() const { return visited_ + meeting_.visited_count(); }

 private:
  using State = std::uint32_t;

  struct Visit {
    std::uint64_t search = 0;  // which search wrote the rest
    Picoseconds cost = 0;
    std::uint32_t first_step = kNone;
    std::uint32_t steps = 0;
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
  const LinkModel& model(const Edge& edge) const { return *topology_.link(edge.link).model; }
  bool is_nvlink(const Arc& arc) const { return model(arc.edge).kind == LinkKind::nvlink; }
  bool is_gpu(NodeIndex node) const { return topology_.node(node).kind == NodeKind::gpu; }

  State run(NodeIndex from, NodeIndex to) {
    ++search_;
    steps_.clear();
    open_ = {};
    start_ = 2 * from;
    to_ = to;
    is_bounded_ = meeting_.knows(from, to);
    if (is_bounded_) bound_ = meeting_.run(from, to);
    if (is_bounded_ && bound_ == MeetingSearch::kNoRoute) return kNone;
    visits_[start_] = {.search = search_};
    open_.emplace(0, start_);
    const int home = topology_.node(from).worker;
    const int away = topology_.node(to).worker;
    while (!open_.empty()) {
      const auto [cost, state] = open_.top();
      open_.pop();
      if (visits_[state].done || visits_[state].cost < cost) continue;
      if (node_of(state) == to) return state;
      visits_[state].done = true;
      ++visited_;
      expand(state, kNoWorker);
      if (home != kNoWorker) expand(state, home);
      if (away != kNoWorker && away != home) expand(state, away);
    }
    return kNone;
  }

  void expand(State state, int worker) {
    for (const Arc& arc : arcs_.into(node_of(state), worker)) {
      if (!may_leave(state, arc)) continue;
      const bool crossable = state == start_ && is_nvlink(arc) && is_gpu(arc.to);
      if (is_gpu(arc.to) && arc.to != to_ && !crossable) continue;
      reach(2 * arc.to + (crossable ? 1 : 0), visits_[state].cost + arcs_.cost(arc), state, arc.edge);
    }
  }

  bool may_leave(State state, const Arc& arc) const {
    if (state == start_ || !is_gpu(node_of(state))) return true;
    return is_crossable(state) && is_nvlink(arc) && is_gpu(arc.to);
  }

  bool may_be_on_route(NodeIndex node, Picoseconds cost) const {
    return !is_bounded_ || (cost <= bound_ && meeting_.rest_at_least(node) <= bound_ - cost);
  }

  void reach(State state, Picoseconds cost, State from, Edge edge) {
    if (!may_be_on_route(node_of(state), cost)) return;
    Visit& visit = visits_[state];
    const bool is_new = visit.search != search_;
    if (!is_new && visit.cost < cost) return;
    if (is_new || cost < visit.cost) {
      visit = {.search = search_, .cost = cost};
      open_.emplace(cost, state);
    }
    steps_.push_back({from, edge, visit.first_step});
    visit.first_step = static_cast<std::uint32_t>(steps_.size() - 1);
    ++visit.steps;
  }

  // Walks back from `state`, choosing among equal ways by the hash of the flow.
  Route trace(State state, const Key& key) const {
    Route route = empty_route();
    std::uint64_t hash = hash_of(key);
    while (state != start_) {
      hash = mixed(hash);
      std::uint32_t step = visits_[state].first_step;
      for (std::uint64_t skip = hash % visits_[state].steps; skip > 0; --skip) step = steps_[step].next;
      route.hops.push_back(steps_[step].edge);
      state = steps_[step].from;
    }
    std::reverse(route.hops.begin(), route.hops.end());
    for (const Edge& hop : route.hops) {
      route.latency_s += model(hop).latency_s.value;
      route.bandwidth_bytes_per_s = std::min(route.bandwidth_bytes_per_s, model(hop).bandwidth_bytes_per_s.value);
    }
    return route;
  }

  const Topology& topology_;
  Arcs arcs_;
  MeetingSearch meeting_;
  std::vector<Visit> visits_;  // by state
  std::vector<Step> steps_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  State start_ = 0;
  NodeIndex to_ = 0;
  bool is_bounded_ = false;
  Picoseconds bound_ = 0;  // of the whole route, where is_bounded_
  std::uint64_t search_ = 0;
  std::uint64_t visited_ = 0;
};

}  // namespace

struct Router::Impl {
  const Topology& topology;
  Search search;
  RouteCache cache;
};

Router::Router(const Topology& topology, std::size_t cache_capacity)
    : impl_(new Impl{topology, Search(topology), RouteCache(cache_capacity)}) {}

Router::~Router() = default;

std::shared_ptr<const Route> Router::route(NodeIndex from, NodeIndex to, std::uint64_t flow) {
  const Topology& topology = impl_->topology;
  TANDEM_CHECK(from < topology.node_count() && to < topology.node_count(), "a route to a node that does not exist");
  const Key key{from, to, flow};
  if (auto known = impl_->cache.find(key)) return known;
  std::optional<Route> found = from == to ? empty_route() : impl_->search.find(key);
  if (!found) {
    throw Error("topology '" + topology.name() + "': no path from '" + topology.node(from).name + "' to '" +
                topology.node(to).name + "'");
  }
  auto shared = std::make_shared<const Route>(std::move(*found));
  impl_->cache.insert(key, shared);
  return shared;
}

std::uint64_t Router::visited_count() const {
  return impl_->search.visited_count();
}

}  // namespace tandem
