#include "topologies/joined_machines.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tandem {
namespace {

std::optional<NodeIndex> first_shared_switch(const Topology& topology) {
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    if (node.kind == NodeKind::nvswitch && node.worker == kNoWorker) return index;
  }
  return std::nullopt;
}

}  // namespace

int joined_machines(const Topology& topology) {
  const std::optional<NodeIndex> shared = first_shared_switch(topology);
  if (!shared) return 1;
  std::set<int> workers;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if (link.from != *shared && link.to != *shared) continue;
    workers.insert(topology.node(link.from == *shared ? link.to : link.from).worker);
  }
  workers.erase(kNoWorker);
  return std::max(1, static_cast<int>(workers.size()));
}

}  // namespace tandem
