// Routes between the nodes of a topology.
//
// A route is the cheapest path. A link costs its latency plus the time that a reference message takes on it. Nodes of a
// third worker are never crossed, and a GPU is crossed only between two NVLink hops, as in NCCL. Between nodes of one
// worker no network link is crossed, and between NICs of two workers nothing else, unless there is no other path. One
// of several equally cheap paths is chosen by a hash of the flow (ECMP), so that equal inputs give equal routes.
//
// Threads: use a Router from one thread.
#pragma once

#include <memory>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// A link in the direction in which it is crossed.
struct Edge {
  LinkIndex link = 0;
  bool forward = true;  // along Link::from -> Link::to
};

struct Route {
  std::vector<Edge> hops{};
  double latency_s = 0;              // sum over the hops
  double bandwidth_bytes_per_s = 0;  // that of the narrowest hop; infinity for an empty route
};

class Router {
 public:
  // Keeps at most `cache_capacity` routes in memory.
  explicit Router(const Topology& topology, std::size_t cache_capacity = 65536);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Returns the route of a flow, computed on demand. Throws tandem::Error naming both ends when there is no path.
  std::shared_ptr<const Route> route(NodeIndex from, NodeIndex to, std::uint64_t flow = 0);

  // Whether there is a path. Searches for it each time.
  bool connects(NodeIndex from, NodeIndex to) const;

  // Appends the route of a flow to `route` without caching it, for very many routes. `route` must start with an
  // infinite bandwidth.
  void append(NodeIndex from, NodeIndex to, Route& route, std::uint64_t flow = 0);

  // Returns how many nodes all searches so far have visited: the cost of routing, independent of the machine.
  std::uint64_t visited_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
