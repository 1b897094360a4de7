#include "scenarios/estimates/link_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace tandem::calibration {
namespace {

constexpr double kTolerance = 1.05;
constexpr int kFirstReducingArchitecture = 90;  // NVLink SHARP came with the NVSwitch of Hopper

bool is_gpu(const Topology& topology, NodeIndex index) {
  return topology.node(index).kind == NodeKind::gpu;
}

// Links over which GPUs reach each other without the host.
bool is_between_gpus(const Topology& topology, const Link& link) {
  const auto ends_at = [&](NodeKind kind) {
    return topology.node(link.from).kind == kind || topology.node(link.to).kind == kind;
  };
  return (is_gpu(topology, link.from) && is_gpu(topology, link.to)) || ends_at(NodeKind::nvswitch);
}

// An unknown architecture may be one that reduces in switches.
bool may_reduce_in_switches(const DeviceModel& model) {
  constexpr std::string_view kNvidia = "sm_";
  if (model.architecture.empty()) return true;
  if (!model.architecture.starts_with(kNvidia)) return false;
  int number = 0;
  const char* first = model.architecture.data() + kNvidia.size();
  std::from_chars(first, model.architecture.data() + model.architecture.size(), number);
  return number >= kFirstReducingArchitecture;
}

// Returns the least number of bytes that a device must send or receive, divided by its buffer.
double least_share_of_device(CollectiveKind kind, int devices, bool switches_reduce) {
  const double factor = bus_bandwidth_factor(kind, devices);
  return kind == CollectiveKind::all_reduce && switches_reduce ? 1 : factor;
}

// Returns the same for a machine with devices / nodes devices. The network's switches may reduce.
double least_share_of_machine(CollectiveKind kind, int devices, int nodes) {
  const double others = static_cast<double>(nodes - 1) / nodes;
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return others;
    case CollectiveKind::all_to_all:
      return others * devices / nodes;
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_receive:
      return 1;
  }
  TANDEM_UNREACHABLE("a CollectiveKind outside its enumerators");
}

}  // namespace

LinkLimits::LinkLimits(const Topology& topology) : nvlink_domain_(topology.facts().nvlink_domain) {
  std::map<NodeIndex, double> to_gpus, to_host;  // by GPU
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(i);
    for (const NodeIndex end : {link.from, link.to}) {
      if (!is_gpu(topology, end) || (link.direction == Direction::one_way && end == link.to)) continue;
      (is_between_gpus(topology, link) ? to_gpus : to_host)[end] += link.model->bandwidth_bytes_per_s.value;
    }
  }
  for (const auto& [gpu, bytes_per_s] : to_gpus.empty() ? to_host : to_gpus) {
    if (device_ && device_->bytes_per_s <= bytes_per_s) continue;
    device_ = Limit{bytes_per_s, "the links of " + topology.node(gpu).name};
  }
  std::map<int, double> ports;  // by worker
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(i);
    if (node.kind == NodeKind::nic && node.port) ports[node.worker] += node.port->bandwidth_bytes_per_s.value;
    if (node.kind == NodeKind::gpu && node.device && may_reduce_in_switches(*node.device)) switches_reduce_ = true;
  }
  for (const auto& [worker, bytes_per_s] : ports) {
    if (ports_ && ports_->bytes_per_s <= bytes_per_s) continue;
    ports_ = Limit{bytes_per_s, fmt::format("the network ports of machine {}", worker)};
  }
}

std::optional<LinkLimits::Limit> LinkLimits::bus_bandwidth(CollectiveKind kind, int devices, int nodes) const {
  if (!device_) return {};
  const double factor = bus_bandwidth_factor(kind, devices);
  const double of_device = least_share_of_device(kind, devices, switches_reduce_);
  Limit limit{factor / of_device * device_->bytes_per_s, device_->links};
  if (of_device < factor) limit.links += ", whose switches reduce";
  if (nodes <= nvlink_domain_ || !ports_) return limit;
  const double of_machine = kind == CollectiveKind::all_reduce ? bus_bandwidth_factor(kind, nodes)
                                                               : least_share_of_machine(kind, devices, nodes);
  const double by_ports = factor / of_machine * ports_->bytes_per_s;
  return by_ports < limit.bytes_per_s ? Limit{by_ports, ports_->links} : limit;
}

std::optional<Contradiction> LinkLimits::contradiction(CollectiveKind kind, int devices, int nodes, double bytes,
                                                       double time_s) const {
  const auto check = [&](const std::optional<Limit>& limit, double share) -> std::optional<Contradiction> {
    const double carried = share * bytes / time_s;
    if (!limit || carried <= kTolerance * limit->bytes_per_s) return {};
    return Contradiction{carried, limit->bytes_per_s, limit->links};
  };
  if (auto found = check(device_, least_share_of_device(kind, devices, switches_reduce_))) return found;
  if (nodes <= nvlink_domain_) return {};
  return check(ports_, least_share_of_machine(kind, devices, nodes));
}

}  // namespace tandem::calibration
