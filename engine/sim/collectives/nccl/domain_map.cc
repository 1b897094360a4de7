#include "engine/sim/collectives/nccl/domain_map.h"

#include <boost/pending/disjoint_sets.hpp>
#include <cmath>

#include "topologies/usual_latency.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kMicroseconds = 1e-6;
constexpr double kRoundingUs = 1e-9;
constexpr double kFreeBytesPerS = 5000e9;  // NCCL's rate of what costs nothing: two ports of one card

double unusual_latency_us(const Topology& topology, LinkIndex index) {
  const LinkModel& model = topology.link_model(index);
  if (model.bandwidth_bytes_per_s.value >= kFreeBytesPerS) return 0;
  const double unusual_us = (model.latency_s.value - usual_latency_s(topology, index)) / kMicroseconds;
  return std::abs(unusual_us) < kRoundingUs ? 0 : unusual_us;
}

// Numbers the domains of the nodes from `first` on: workers, joined where NVLink joins them.
std::vector<int> domain_numbers(const Topology& topology, NodeIndex first, LinkIndex first_link) {
  const std::size_t nodes = topology.node_count() - first;
  const auto workers = static_cast<std::size_t>(topology.worker_count());
  boost::disjoint_sets_with_storage<> sets(nodes + workers);
  for (std::size_t node = 0; node < nodes; ++node) {
    const int worker = topology.worker(first + static_cast<NodeIndex>(node));
    if (worker != kNoWorker) sets.union_set(node, nodes + static_cast<std::size_t>(worker));
  }
  for (LinkIndex index = first_link; index < topology.link_count(); ++index) {
    if (topology.link_model(index).kind != LinkKind::nvlink) continue;
    const Link link = topology.link(index);
    sets.union_set(std::size_t{link.from - first}, std::size_t{link.to - first});
  }
  std::vector<int> number_of(nodes + workers, -1);
  std::vector<int> numbers(nodes);
  int next = 0;
  for (std::size_t node = 0; node < nodes; ++node) {
    int& number = number_of[sets.find_set(node)];
    if (number < 0) number = next++;
    numbers[node] = number;
  }
  return numbers;
}

bool nvlink_leaves_machines(const Topology& topology) {
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    if (topology.link_model(index).kind != LinkKind::nvlink) continue;
    const Link link = topology.link(index);
    if (link.from < topology.machine_nodes() || link.to < topology.machine_nodes()) return true;
  }
  return false;
}

// Returns whether one of the links from `first` on has another latency than usual ones.
bool has_unusual_link(const Topology& topology, LinkIndex first) {
  for (LinkIndex index = first; index < topology.link_count(); ++index) {
    if (unusual_latency_us(topology, index) != 0) return true;
  }
  return false;
}

// Examines the links of machines that are alike only once.
bool has_unusual_link(const Topology& topology) {
  const Topology* seen = nullptr;
  for (int worker = 0; worker < topology.machine_count(); ++worker) {
    const Topology& machine = topology.machine(worker);
    if (&machine != seen && has_unusual_link(machine, 0)) return true;
    seen = &machine;
  }
  return has_unusual_link(topology, topology.machine_links());
}

}  // namespace

Neighbours::Neighbours(const Topology& topology)
    : topology_(topology), added_(lists_of(topology, topology.machine_links())) {
  if (topology.machine_count() > 0) in_machine_ = lists_of(topology.machine(0), 0);
}

Neighbours::Lists Neighbours::lists_of(const Topology& topology, LinkIndex first) {
  Lists lists;
  lists.starts.assign(topology.node_count() + 1, 0);
  for (LinkIndex index = first; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    ++lists.starts[link.from + 1];
    ++lists.starts[link.to + 1];
  }
  for (std::size_t node = 0; node < topology.node_count(); ++node) lists.starts[node + 1] += lists.starts[node];
  lists.links.resize(lists.starts.back());
  std::vector<std::uint32_t> next(lists.starts.begin(), lists.starts.end() - 1);
  for (LinkIndex index = first; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    lists.links[next[link.from]++] = index;
    lists.links[next[link.to]++] = index;
  }
  return lists;
}

DomainMap::DomainMap(const Topology& topology, Router& its_router)
    : neighbours(topology), router(its_router), topology_(topology) {
  has_unusual_links_ = has_unusual_link(topology);
  machines_are_domains_ = topology.machine_count() > 0 && !nvlink_leaves_machines(topology);
  if (machines_are_domains_) first_ = topology.machine_nodes();
  numbers_ = domain_numbers(topology, first_, machines_are_domains_ ? topology.machine_links() : 0);
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const auto domain = static_cast<std::size_t>(numbers_[i]);
    if (nodes_.size() <= domain) nodes_.resize(domain + 1);
    nodes_[domain].push_back(first_ + static_cast<NodeIndex>(i));
  }
}

int DomainMap::domain_of(NodeIndex node) const {
  if (node < first_) return topology_.worker(node);
  return numbers_[node - first_] + (machines_are_domains_ ? topology_.machine_count() : 0);
}

double DomainMap::unusual_us(LinkIndex link) const {
  return unusual_latency_us(topology_, link);
}

double DomainMap::unusual_us(const Route& route) const {
  double sum_us = 0;
  for (const Edge& hop : route.hops) sum_us += unusual_us(hop.link);
  return sum_us;
}

std::vector<NodeIndex> DomainMap::nodes_of(int domain) const {
  if (!machines_are_domains_) return nodes_[static_cast<std::size_t>(domain)];
  if (domain >= topology_.machine_count()) return nodes_[static_cast<std::size_t>(domain - topology_.machine_count())];
  std::vector<NodeIndex> nodes(topology_.nodes_of_machine());
  for (NodeIndex node = 0; node < nodes.size(); ++node) {
    nodes[node] = static_cast<NodeIndex>(domain) * topology_.nodes_of_machine() + node;
  }
  return nodes;
}

}  // namespace tandem::sim::nccl
