#include "scenarios/plan/replica_exchange.h"

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/workloads/layer_ops.h"
#include "strategies/model/experts.h"
#include "topologies/joined_machines.h"

namespace tandem {
namespace {

// Returns the seconds in which each of the devices of a stage sends `bytes` x (n - 1) / n of a buffer to others, or
// receives as much, where groups of n devices with the same parameters reduce, scatter or gather.
class GroupTimes {
 public:
  GroupTimes(const ParallelOptions& mesh, std::int64_t devices_of_group, const LinkRates& rates)
      : mesh_(mesh), devices_(devices_of_group), rates_(rates) {
    const std::int64_t joined = mesh_.joined, all = mesh_.span_of_places(static_cast<int>(devices_));
    if (joined == 0 || all <= joined) return;
    const std::int64_t of_replica = all / mesh_.data, of_part = std::int64_t{mesh_.tensor} * mesh_.context;  // ranks
    if (joined % of_replica == 0 || of_replica == of_part) {  // several replicas, or none has anything between
      domains_ = all / joined;
      is_known_ = joined % mesh_.tensor == 0 && all % joined == 0;
    } else {  // some stages of a replica, or parts of a sequence
      domains_ = mesh_.data * std::max<std::int64_t>(1, of_part / joined);
      is_known_ =
          joined % mesh_.tensor == 0 && of_replica % joined == 0 && (joined % of_part == 0 || of_part % joined == 0);
    }
    machines_of_domain_ = std::max<std::int64_t>(1, joined / mesh_.per_worker);
  }

  double seconds(double bytes) const {
    if (devices_ == 1 || !is_known_) return 0;
    const double by_device = rates_.of_gpu > 0 ? rates_.of_gpu : rates_.of_host;
    if (domains_ == 1) return by_device > 0 ? bytes * others(devices_) / by_device : 0;
    if (rates_.of_machine <= 0) return 0;
    // What the devices of a domain have of a group is reduced there first; each tensor-parallel part has its group.
    const double ports = rates_.of_machine * static_cast<double>(machines_of_domain_);
    return bytes * mesh_.tensor * others(domains_) / ports;
  }

 private:
  static double others(std::int64_t count) { return static_cast<double>(count - 1) / static_cast<double>(count); }

  const ParallelOptions& mesh_;
  std::int64_t devices_, domains_ = 1, machines_of_domain_ = 1;
  const LinkRates& rates_;
  bool is_known_ = true;
};

// Models that override another one are objects of their own.
bool machines_are_alike(const Topology& topology) {
  std::map<int, std::vector<const void*>> models;  // by worker
  std::set<const void*> devices;
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(i);
    if (node.kind == NodeKind::gpu) devices.insert(node.device.get());
    if (node.worker >= 0) models[node.worker].insert(models[node.worker].end(), {node.device.get(), node.port.get()});
  }
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(i);
    const int worker = std::max(topology.node(link.from).worker, topology.node(link.to).worker);
    if (worker >= 0) models[worker].push_back(link.model.get());
  }
  const auto is_as_first = [&](const auto& one) { return one.second == models.begin()->second; };
  return devices.size() <= 1 && std::ranges::all_of(models, is_as_first);
}

}  // namespace

LinkRates::LinkRates(const Topology& topology) : are_alike(machines_are_alike(topology)) {
  std::map<NodeIndex, double> to_gpus, to_host;
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    if (topology.kind(i) != NodeKind::gpu) continue;
    const DeviceModel& model = *topology.device(i);
    if (model.rates.empty()) of_memory = std::max(of_memory, model.memory_bandwidth_bytes_per_s.value);
  }
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(i);
    const auto ends_at = [&](NodeKind kind) {
      return topology.node(link.from).kind == kind || topology.node(link.to).kind == kind;
    };
    for (const NodeIndex end : {link.from, link.to}) {
      if (topology.node(end).kind != NodeKind::gpu) continue;
      const NodeIndex other = end == link.from ? link.to : link.from;
      const bool is_among_gpus = ends_at(NodeKind::nvswitch) || topology.node(other).kind == NodeKind::gpu;
      (is_among_gpus ? to_gpus : to_host)[end] += link.model->bandwidth_bytes_per_s.value;
    }
  }
  for (const auto& [gpu, rate] : to_gpus) of_gpu = std::max(of_gpu, rate);
  for (const auto& [gpu, rate] : to_host) of_host = std::max(of_host, rate);
  std::map<int, double> ports;
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(i);
    if (node.kind == NodeKind::nic && node.port) ports[node.worker] += node.port->bandwidth_bytes_per_s.value;
  }
  for (const auto& [worker, rate] : ports) of_machine = std::max(of_machine, rate);
}

double least_update_s(const LayersSettings& layers, double parameters, double parts, const LinkRates& rates) {
  if (layers.learning || rates.of_memory <= 0) return 0;
  const double of_sum = 3 * static_cast<double>(size_of(layers.parameter_type()));  // reads both, writes one
  const double bytes = parameters / parts * (of_sum + optimizer_state(layers, 1).bytes);
  return (1 - layers.offload.optimizer) * bytes / rates.of_memory;
}

ReplicaExchange replica_exchange(const ParallelOptions& mesh, const LayersSettings& layers,
                                 const std::vector<std::size_t>& first, const LinkRates& rates) {
  const bool divides_state = mesh.distributed_optimizer;
  ReplicaExchange exchange{.is_summed_later = !layers.overlap && !mesh.shard_parameters,
                           .is_gathered_first = mesh.overlap_gather};
  const GroupTimes times(mesh, mesh.replicas(), rates);
  const auto gradient_bytes = static_cast<double>(size_of(layers.parameter_type()));
  const bool is_among_others = mesh.replicate > 1 || mesh.ways() > 1;
  const double parameter_bytes = layers.gathers_quantised ? 1 : static_cast<double>(size_of(layers.storage()));
  for (int chunk = 0; chunk < mesh.chunks(); ++chunk) {
    const auto stage = static_cast<std::size_t>(mesh.stage_of(0, chunk));
    double parameters = 0, of_experts = 0;
    for (std::size_t i = first[stage]; i < first[stage + 1]; ++i) {
      const Layer& layer = layers.model.layers[i];
      const auto all = static_cast<double>(layer.parameters());
      (has_experts(layer) ? of_experts : parameters) +=
          all / (has_experts(layer) ? mesh.expert * mesh.expert_parts() : mesh.tensor);
    }
    const bool is_divided = divides_state || mesh.shard_parameters;
    const int with_experts = mesh.devices_with_experts() * mesh.ways() / mesh.expert;
    exchange.updated_s += least_update_s(layers, parameters, is_divided ? mesh.replicas() : 1, rates) +
                          least_update_s(layers, of_experts, is_divided ? with_experts : 1, rates);
    if (is_among_others) continue;
    exchange.summed_s += times.seconds(parameters * gradient_bytes);
    exchange.gathered_s.push_back(divides_state ? times.seconds(parameters * parameter_bytes) : 0);
  }
  return exchange;
}

}  // namespace tandem
