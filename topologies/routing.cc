#include "topologies/routing.h"

#include <algorithm>
#include <limits>
#include <list>
#include <unordered_map>

#include "topologies/base/error.h"
#include "topologies/route_classes.h"

namespace tandem {
namespace {

struct Key {
  NodeIndex from;
  NodeIndex to;
  std::uint64_t flow;
  bool operator==(const Key&) const = default;
};

std::uint64_t hash_of(const Key& key) {
  return Ways::mixed(Ways::mixed((std::uint64_t{key.from} << 32) | key.to) ^ key.flow);
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

}  // namespace

struct Router::Impl {
  const Topology& topology;
  const Arcs arcs;
  RouteSearch search;
  RouteClasses classes;
  RouteCache cache;

  Impl(const Topology& of, std::size_t cache_capacity)
      : topology(of), arcs(of), search(of, arcs), classes(of, arcs), cache(cache_capacity) {}

  // Appends the edges of the route between two different nodes.
  void append(const Key& key, std::vector<Edge>& hops) {
    const std::uint64_t hash = hash_of(key);
    if (classes.append(key.from, key.to, hash, search, hops)) return;
    const auto ways = search.find(key.from, key.to);
    if (!ways) {
      throw ImpossibleError("topology '" + topology.name() + "': no path from '" + topology.node(key.from).name +
                            "' to '" + topology.node(key.to).name + "'");
    }
    const std::size_t first = hops.size();
    ways->walk(hash, [&](std::size_t way) { hops.push_back(ways->ways[way].edge); });
    std::reverse(hops.begin() + static_cast<std::ptrdiff_t>(first), hops.end());
  }
};

Router::Router(const Topology& topology, std::size_t cache_capacity) : impl_(new Impl(topology, cache_capacity)) {}

Router::~Router() = default;

std::shared_ptr<const Route> Router::route(NodeIndex from, NodeIndex to, std::uint64_t flow) {
  const Key key{from, to, flow};
  if (auto known = impl_->cache.find(key)) return known;
  Route route = empty_route();
  append(from, to, route, flow);
  auto shared = std::make_shared<const Route>(std::move(route));
  impl_->cache.insert(key, shared);
  return shared;
}

void Router::append(NodeIndex from, NodeIndex to, Route& route, std::uint64_t flow) {
  const Topology& topology = impl_->topology;
  TANDEM_REQUIRE(from < topology.node_count() && to < topology.node_count(), "a route to a node that does not exist");
  const std::size_t first = route.hops.size();
  if (from != to) impl_->append({from, to, flow}, route.hops);
  double latency_s = 0;
  for (std::size_t i = first; i < route.hops.size(); ++i) {
    const LinkModel& model = topology.link_model(route.hops[i].link);
    latency_s += model.latency_s.value;
    route.bandwidth_bytes_per_s = std::min(route.bandwidth_bytes_per_s, model.bandwidth_bytes_per_s.value);
  }
  route.latency_s += latency_s;
}

bool Router::connects(NodeIndex from, NodeIndex to) const {
  return from == to || impl_->search.find(from, to).has_value();
}

std::uint64_t Router::visited_count() const {
  return impl_->search.visited_count();
}

}  // namespace tandem
