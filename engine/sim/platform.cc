#include "engine/sim/platform.h"

#include "engine/sim/sparse_vector.h"

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
  }

  // SimGrid asks this function for the links of a route. It reports no latency, because Network::transfer spends it.
  void get_local_route(const simgrid_compat::NetPoint* source, const simgrid_compat::NetPoint* destination,
                       simgrid_compat::LocalRoute* into, double* /*latency*/) override {
    const auto& chosen = platform_.next_route_;
    const auto route = chosen ? chosen : platform_.route(nodes_[source->id()], nodes_[destination->id()]);
    for (const Edge& hop : route->hops) {
      into->link_list_.push_back(link(hop));
    }
  }

 private:
  using LinkImpl = std::remove_pointer_t<decltype(simgrid_compat::LocalRoute::link_list_)::value_type>;

  LinkImpl* link(const Edge& hop) {
    const std::size_t index = platform_.direction_index(hop);
    LinkImpl*& link = links_[index];
    if (link == nullptr) {
      const LinkModel& model = platform_.topology_.link_model(hop.link);
      link = simgrid_compat::add_link(this, std::to_string(index), model.bandwidth_bytes_per_s.value)->get_impl();
    }
    return link;
  }

  Platform& platform_;
  std::vector<NodeIndex> nodes_;   // by SimGrid's number of the host
  SparseVector<LinkImpl*> links_;  // by Platform::direction_index; null until used
};

Platform::Platform(const Topology& topology, Router& router, std::span<const HostSpec> nodes)
    : topology_(topology), router_(router) {
  auto* zone = new Zone(*this);
  simgrid_compat::adopt_zone(zone);
  zone->add_nodes(nodes);
  zone->add_links();
  simgrid_compat::seal_platform();
}

Platform::~Platform() = default;

}  // namespace tandem::sim
