// A topology as a SimGrid platform: a host for every node that computes, and a SimGrid link for each direction of every
// link. Machines that send to each other in turn also have a SimGrid link for each pair. A Router finds routes when
// flows start, so that no table of pairs is needed.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/sim/base/simgrid_compat.h"
#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem::sim {

struct HostSpec {
  NodeIndex node = 0;
  int cores = 1;
};

class Platform {
 public:
  // The topology and its router must outlive it.
  Platform(const Topology& topology, Router& router, std::span<const HostSpec> nodes);
  ~Platform();
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  // Null for a node without a host.
  simgrid_compat::s4u::Host* host(NodeIndex node) const {
    const auto host = hosts_.find(node);
    return host == hosts_.end() ? nullptr : host->second;
  }
  std::shared_ptr<const Route> route(NodeIndex from, NodeIndex to) { return router_.route(from, to); }

  // Returns the latency of a route that somebody waits for, and remembers the models of its links.
  double latency_s(const Route& route);
  const std::vector<const LinkModel*>& models_with_latency() const { return models_with_latency_; }
  void forget_latencies() { models_with_latency_.clear(); }

  Router& router() { return router_; }
  // Flows that start from now on take this route; null: the route between their ends.
  void use_route(std::shared_ptr<const Route> route) { next_route_ = std::move(route); }

  // Numbers the directions of links that have a capacity of their own: two of a duplex link, otherwise one.
  std::size_t direction_index(const Edge& hop) const {
    const bool shares = topology_.direction(hop.link) != Direction::duplex;
    return 2 * std::size_t{hop.link} + (hop.forward || shares ? 0 : 1);
  }
  // From now on the link carries this share (more than 0) of its own rate in each direction.
  void set_share(LinkIndex link, double share);

  const Topology& topology() const { return topology_; }
  std::size_t direction_count() const { return 2 * topology_.link_count(); }

 private:
  class Zone;

  const Topology& topology_;
  Router& router_;
  Zone* zone_ = nullptr;                            // SimGrid's
  std::unordered_map<LinkIndex, double> shares_{};  // of links that have had another rate than their own
  std::shared_ptr<const Route> next_route_;
  std::unordered_map<NodeIndex, simgrid_compat::s4u::Host*> hosts_;
  std::vector<const LinkModel*> models_with_latency_;  // each once
};

}  // namespace tandem::sim
