// A topology as a SimGrid platform: a host for every node that computes, a link for every direction of every
// link, and routes asked of a Router when a transfer starts, so that no table of pairs exists.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/sim/simgrid_compat.h"
#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem::sim {

inline constexpr double kHostSpeed = 1e9;  // flop/s of a core: work is given in nanoseconds

struct HostSpec {
  NodeIndex node = 0;
  int cores = 1;
};

class Platform {
 public:
  Platform(const Topology& topology, std::span<const HostSpec> nodes);
  ~Platform();
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  // Null for a node without a host.
  simgrid_compat::s4u::Host* host(NodeIndex node) const { return hosts_[node]; }
  std::shared_ptr<const Route> route(NodeIndex from, NodeIndex to) { return router_.route(from, to); }

  // A number for each direction of each link that has a capacity of its own.
  std::size_t lane(const Edge& hop) const {
    const bool shares = topology_.link(hop.link).direction != Direction::duplex;
    return 2 * std::size_t{hop.link} + (hop.forward || shares ? 0 : 1);
  }
  std::size_t lane_count() const { return 2 * topology_.link_count(); }

 private:
  class Zone;

  const Topology& topology_;
  Router router_;
  std::vector<simgrid_compat::s4u::Host*> hosts_;  // by node
};

}  // namespace tandem::sim
