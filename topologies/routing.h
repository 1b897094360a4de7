// The way data takes between two nodes of a topology.
//
// A route is the cheapest path, where a link costs its latency plus the time of a reference message; nodes
// of a third worker are never crossed, a GPU is crossed only between two NVLink hops (as NCCL does), and of
// several equal paths one is chosen by a hash of the flow, so equal inputs always take equal ways (ECMP).
//
// Threads: a Router is used from one thread. Memory: at most `cache_capacity` routes are kept.
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
  double bandwidth_bytes_per_s = 0;  // of the narrowest hop; infinity for an empty route
};

class Router {
 public:
  explicit Router(const Topology& topology, std::size_t cache_capacity = 65536);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Computed on demand. Throws tandem::Error naming both ends when there is no path.
  std::shared_ptr<const Route> route(NodeIndex from, NodeIndex to, std::uint64_t flow = 0);

  // How many nodes all searches so far have looked at: what routing costs, independent of the machine.
  std::uint64_t visited_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
