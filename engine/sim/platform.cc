#include "engine/sim/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/sim/base/sparse_vector.h"
#include "topologies/base/error.h"

namespace tandem::sim {

// Owned by SimGrid, which deletes its zones itself.
class Platform::Zone : public simgrid_compat::NetZoneImpl {
 public:
  explicit Zone(Platform& platform)
      : NetZoneImpl("topology"), platform_(platform), links_(platform.direction_count()) {}

  void add_nodes(std::span<const HostSpec> specs) {
    for (const HostSpec& spec : specs) {
      simgrid_compat::s4u::Host* host = simgrid_compat::add_host(this, platform_.topology_.node(spec.node).name);
      platform_.hosts_[spec.node] = host;
      const std::size_t id = host->get_netpoint()->id();
      if (nodes_.size() <= id) nodes_.resize(id + 1);
      nodes_[id] = spec.node;
    }
  }

  // Adds all links where SimGrid demands that before the simulation. Where it does not, a link is added when it is
  // first used: 16,384 GPUs have 131,072 links, of which a ring uses a third.
  void add_links() {
    if (simgrid_compat::kLinksOnDemand) return;
    for (LinkIndex index = 0; index < platform_.topology_.link_count(); ++index) {
      link({index, true});
      link({index, false});
    }
    for (const auto& [from, host] : platform_.hosts_) {
      for (const auto& [to, other] : platform_.hosts_) {
        if (is_exchange(from, to)) exchange(from, to);
      }
    }
  }

  // Links that nobody has used yet get their rate when they are added.
  void set_rate(LinkIndex index) {
    for (const bool forward : {true, false}) {
      simgrid_compat::s4u::Link* const link = links_.at(platform_.direction_index({index, forward}));
      if (link != nullptr) link->set_bandwidth(rate_of(index));
    }
  }

  // SimGrid asks this function for the links of a route. It reports no latency, because Network::transfer spends it.
  void get_local_route(const simgrid_compat::NetPoint* source, const simgrid_compat::NetPoint* destination,
                       simgrid_compat::LocalRoute* into, double* /*latency*/) override {
    const auto& chosen = platform_.next_route_;
    const NodeIndex from = nodes_[source->id()], to = nodes_[destination->id()];
    const auto route = chosen ? chosen : platform_.route(from, to);
    for (const Edge& hop : route->hops) {
      into->link_list_.push_back(link(hop));
    }
    if (is_exchange(from, to)) into->link_list_.push_back(exchange(from, to));
  }

 private:
  using LinkImpl = std::remove_pointer_t<decltype(simgrid_compat::LocalRoute::link_list_)::value_type>;

  LinkImpl* link(const Edge& hop) {
    const std::size_t index = platform_.direction_index(hop);
    simgrid_compat::s4u::Link*& link = links_[index];
    if (link == nullptr) {
      link = simgrid_compat::add_link(this, std::to_string(index), rate_of(hop.link));
    }
    return link->get_impl();
  }

  double rate_of(LinkIndex link) const {
    const double own = platform_.topology_.link_model(link).bandwidth_bytes_per_s.value;
    const auto share = platform_.shares_.find(link);
    return share == platform_.shares_.end() ? own : own * share->second;
  }

  // Returns whether what the nodes send to each other shares a rate beyond those of its links.
  bool is_exchange(NodeIndex from, NodeIndex to) const {
    const Topology& topology = platform_.topology_;
    return topology.facts().exchanges_in_turn && topology.worker(from) != topology.worker(to);
  }

  double rate_between(NodeIndex from, NodeIndex to) const {
    try {
      return platform_.route(from, to)->bandwidth_bytes_per_s;
    } catch (const Error&) {
      return 0;  // there is no route
    }
  }

  // A link that the flows between two machines cross in both directions, as fast as the faster direction.
  LinkImpl* exchange(NodeIndex from, NodeIndex to) {
    const int a = platform_.topology_.worker(from), b = platform_.topology_.worker(to);
    LinkImpl*& link = exchanges_[std::minmax(a, b)];
    if (link == nullptr) {
      const double bytes_per_s = std::max(rate_between(from, to), rate_between(to, from));
      link = simgrid_compat::add_link(this, fmt::format("{} and {}", std::min(a, b), std::max(a, b)), bytes_per_s)
                 ->get_impl();
    }
    return link;
  }

  Platform& platform_;
  std::vector<NodeIndex> nodes_;                          // by SimGrid's number of the host
  SparseVector<simgrid_compat::s4u::Link*> links_;        // by Platform::direction_index; null until used
  std::map<std::pair<int, int>, LinkImpl*> exchanges_{};  // by the two workers, the smaller number first
};

Platform::Platform(const Topology& topology, Router& router, std::span<const HostSpec> nodes)
    : topology_(topology), router_(router) {
  zone_ = new Zone(*this);
  simgrid_compat::adopt_zone(zone_);
  zone_->add_nodes(nodes);
  zone_->add_links();
  simgrid_compat::seal_platform();
}

Platform::~Platform() = default;

void Platform::set_share(LinkIndex link, double share) {
  double& known = shares_.try_emplace(link, 1).first->second;
  if (std::exchange(known, share) != share) zone_->set_rate(link);
}

double Platform::latency_s(const Route& route) {
  for (const Edge& hop : route.hops) {
    const LinkModel* model = &topology_.link_model(hop.link);
    const bool is_known = std::ranges::find(models_with_latency_, model) != models_with_latency_.end();
    if (!is_known) models_with_latency_.push_back(model);
  }
  return route.latency_s;
}

}  // namespace tandem::sim
