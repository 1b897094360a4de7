#include "topologies/joined_machines.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tandem {
namespace {

std::optional<NodeIndex> first_shared_switch(const Topology& topology) {
  for (NodeIndex index = topology.machine_nodes(); index < topology.node_count(); ++index) {
    if (topology.kind(index) == NodeKind::nvswitch && topology.worker(index) == kNoWorker) return index;
  }
  return std::nullopt;
}

}  // namespace

int joined_machines(const Topology& topology) {
  const std::optional<NodeIndex> shared = first_shared_switch(topology);
  if (!shared) return 1;
  std::set<int> workers;
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if (link.from != *shared && link.to != *shared) continue;
    workers.insert(topology.worker(link.from == *shared ? link.to : link.from));
  }
  workers.erase(kNoWorker);
  return std::max(1, static_cast<int>(workers.size()));
}

}  // namespace tandem
