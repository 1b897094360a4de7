#include "engine/sim/platform.h"

namespace tandem::sim {

// SimGrid deletes its zones itself.
class Platform::Zone : public simgrid_compat::NetZoneImpl {
 public:
  explicit Zone(Platform& platform) : NetZoneImpl("topology"), platform_(platform) {}

  void add_nodes(std::span<const HostSpec> specs) {
    for (const HostSpec& spec : specs) {
      const Node& node = platform_.topology_.node(spec.node);
      simgrid_compat::s4u::Host* host = simgrid_compat::add_host(this, node.name, kHostSpeed, spec.cores);
      platform_.hosts_[spec.node] = host;
      const std::size_t id = host->get_netpoint()->id();
      if (nodes_.size() <= id) nodes_.resize(id + 1);
      nodes_[id] = spec.node;
    }
  }

  void add_links() {
    const Topology& topology = platform_.topology_;
    forward_.reserve(topology.link_count());
    backward_.reserve(topology.link_count());
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link& link = topology.link(index);
      forward_.push_back(add_direction(index, '+', *link.model));
      backward_.push_back(link.direction == Direction::duplex ? add_direction(index, '-', *link.model)
                                                              : forward_.back());
    }
  }

  // Without its latency: Simulation::transfer pays that.
  void get_local_route(const simgrid_compat::NetPoint* source, const simgrid_compat::NetPoint* destination,
                       simgrid_compat::LocalRoute* into, double* /*latency*/) override {
    const auto route = platform_.route(nodes_[source->id()], nodes_[destination->id()]);
    for (const Edge& hop : route->hops) {
      into->link_list_.push_back((hop.forward ? forward_ : backward_)[hop.link]);
    }
  }

 private:
  using LinkImpl = std::remove_pointer_t<decltype(simgrid_compat::LocalRoute::link_list_)::value_type>;

  LinkImpl* add_direction(LinkIndex index, char direction, const LinkModel& model) {
    std::string name = std::to_string(index);
    name += direction;
    return simgrid_compat::add_link(this, name, model.bandwidth_bytes_per_s.value)->get_impl();
  }

  Platform& platform_;
  std::vector<NodeIndex> nodes_;  // by SimGrid's number of the host
  std::vector<LinkImpl*> forward_;
  std::vector<LinkImpl*> backward_;
};

Platform::Platform(const Topology& topology, std::span<const HostSpec> nodes)
    : topology_(topology), router_(topology), hosts_(topology.node_count(), nullptr) {
  auto* zone = new Zone(*this);
  simgrid_compat::adopt_zone(zone);
  zone->add_nodes(nodes);
  zone->add_links();
  simgrid_compat::seal_platform();
}

Platform::~Platform() = default;

}  // namespace tandem::sim
