#include "engine/sim/collectives/nccl/domain_map.h"

#include <boost/pending/disjoint_sets.hpp>

namespace tandem::sim::nccl {
namespace {

// Numbers the domain of every node: machines, joined where NVLink joins them.
std::vector<int> domain_numbers(const Topology& topology) {
  const std::size_t nodes = topology.node_count();
  boost::disjoint_sets_with_storage<> sets(nodes + static_cast<std::size_t>(topology.worker_count()));
  for (NodeIndex node = 0; node < nodes; ++node) {
    const int worker = topology.node(node).worker;
    if (worker != kNoWorker) sets.union_set(std::size_t{node}, nodes + static_cast<std::size_t>(worker));
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    if (link.model->kind == LinkKind::nvlink) sets.union_set(std::size_t{link.from}, std::size_t{link.to});
  }
  std::vector<int> number_of(nodes + static_cast<std::size_t>(topology.worker_count()), -1);
  std::vector<int> numbers(nodes);
  int next = 0;
  for (NodeIndex node = 0; node < nodes; ++node) {
    int& number = number_of[sets.find_set(std::size_t{node})];
    if (number < 0) number = next++;
    numbers[node] = number;
  }
  return numbers;
}

}  // namespace

DomainMap::DomainMap(const Topology& topology, Router& its_router)
    : neighbours(topology), router(its_router), domain_of(domain_numbers(topology)) {
  for (NodeIndex node = 0; node < topology.node_count(); ++node) {
    const auto domain = static_cast<std::size_t>(domain_of[node]);
    if (nodes_of.size() <= domain) nodes_of.resize(domain + 1);
    nodes_of[domain].push_back(node);
  }
}

}  // namespace tandem::sim::nccl
