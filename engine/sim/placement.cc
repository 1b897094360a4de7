#include "engine/sim/placement.h"

#include <fmt/format.h>

#include <vector>

namespace tandem::sim {
namespace {

std::vector<NodeIndex> nodes_for(const Topology& topology, const WorkerSpec& spec, DeviceType type) {
  if (spec.topology_worker < 0 || spec.topology_worker >= topology.worker_count()) {
    throw ImpossibleError(fmt::format("/job:{}/task:{} asks for worker {} of topology '{}', which has {} (0 to {})",
                                      spec.job, spec.task, spec.topology_worker, topology.name(),
                                      topology.worker_count(), topology.worker_count() - 1));
  }
  const NodeKind kind = type == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu;
  std::vector<NodeIndex> nodes = topology.nodes_of(spec.topology_worker, kind);
  if (nodes.empty()) {
    throw UnavailableError(fmt::format("/job:{}/task:{} needs a {}, and worker {} of topology '{}' has none", spec.job,
                                       spec.task, name_of(type), spec.topology_worker, topology.name()));
  }
  for (const NodeIndex node : nodes) {
    if (topology.device(node) == nullptr) {
      throw ImpossibleError(fmt::format("topology '{}': node '{}' has no device model, so nothing can run on it",
                                        topology.name(), topology.node(node).name));
    }
  }
  return nodes;
}

}  // namespace

void place_devices(const EngineOptions& options, const std::function<void(const PlacedDevice&)>& visit) {
  for (std::size_t worker = 0; worker < options.workers.size(); ++worker) {
    const WorkerSpec& spec = options.workers[worker];
    const auto nodes = nodes_for(*options.topology, spec, spec.device_type);
    const auto place = [&](DeviceType type, int index, NodeIndex node) {
      visit({{spec.job, spec.task, type, index}, static_cast<int>(worker), node});
    };
    for (int i = 0; i < spec.device_count; ++i) {
      place(spec.device_type, i, nodes[static_cast<std::size_t>(i) % nodes.size()]);
    }
    if (spec.device_type != DeviceType::cpu || spec.device_count == 0) {
      place(DeviceType::cpu, 0, nodes_for(*options.topology, spec, DeviceType::cpu).front());
    }
  }
}

}  // namespace tandem::sim
