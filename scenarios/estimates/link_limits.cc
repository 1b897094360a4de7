#include "scenarios/estimates/link_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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

// One NVLink or xGMI link of a GPU in GB/s: as NCCL plans with it (src/graph/topo.h 2.30.7, ROCm/rccl), which machines
// state and collectives reach, and as the datasheet has it, beyond which nothing goes.
struct LinkFigures {
  std::string_view architecture;  // the beginning of its name
  double planned_gbs, datasheet_gbs;
  int most;  // links of a GPU
};
constexpr std::array<LinkFigures, 9> kLinkFigures = {{{"sm_6", 18, 20, 4},
                                                      {"sm_7", 20, 25, 6},
                                                      {"sm_80", 20, 25, 12},
                                                      {"sm_8", 12, 14, 4},
                                                      {"sm_9", 20.6, 25, 18},
                                                      {"sm_1", 40.1, 50, 18},
                                                      {"gfx90a", 36, 50, 7},
                                                      {"gfx94", 48, 64, 7},
                                                      {"gfx95", 57, 76.5, 7}}};
// PCIe with 8 and 16 lanes of generations 3 to 6, likewise: 15.75, 31.5, 63 and 126 GB/s with 16 lanes.
constexpr std::array<double, 5> kPlannedPcieGbs = {6, 12, 24, 48, 96};
constexpr double kPcieDatasheetShare = 15.75 / 12;

bool is_about(double a, double b) {
  return std::abs(a - b) < 0.01 * b;
}

// Returns what a link of this GPU carries by its datasheet, if it states the rate that NCCL plans with.
double datasheet_bytes_per_s(const Topology& topology, NodeIndex gpu, const LinkModel& model) {
  const double stated = model.bandwidth_bytes_per_s.value;
  const double gbs = stated / 1e9;
  if (model.kind == LinkKind::pcie) {
    const bool is_planned = std::ranges::any_of(kPlannedPcieGbs, [&](double one) { return is_about(gbs, one); });
    return is_planned ? kPcieDatasheetShare * stated : stated;
  }
  const auto& device = topology.node(gpu).device;
  if (model.kind != LinkKind::nvlink || !device) return stated;
  const auto figures = std::ranges::find_if(
      kLinkFigures, [&](const LinkFigures& one) { return device->architecture.starts_with(one.architecture); });
  if (figures == kLinkFigures.end()) return stated;
  const double links = std::round(gbs / figures->planned_gbs);
  const bool is_planned = links >= 1 && links <= figures->most && is_about(gbs, links * figures->planned_gbs);
  return is_planned ? links * figures->datasheet_gbs * 1e9 : stated;
}

// Returns the least number of bytes that a device must send or receive, divided by its buffer.
double least_share_of_device(CollectiveKind kind, int devices, bool switches_reduce) {
  const double factor = bus_bandwidth_factor(kind, devices);
  return kind == CollectiveKind::all_reduce && switches_reduce ? 1 : factor;
}

// Returns the same for a machine, or an NVLink domain, with devices / nodes devices. The network's switches may reduce.
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
  struct Rates {
    double stated = 0;
    double datasheet = 0;
  };
  std::map<NodeIndex, Rates> to_gpus, to_host;  // by GPU
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(i);
    for (const NodeIndex end : {link.from, link.to}) {
      if (!is_gpu(topology, end) || (link.direction == Direction::one_way && end == link.to)) continue;
      Rates& rates = (is_between_gpus(topology, link) ? to_gpus : to_host)[end];
      rates.stated += link.model->bandwidth_bytes_per_s.value;
      rates.datasheet += datasheet_bytes_per_s(topology, end, *link.model);
    }
  }
  for (const auto& [gpu, rates] : to_gpus.empty() ? to_host : to_gpus) {
    const std::string links = "the links of " + topology.node(gpu).name;
    if (!device_ || device_->bytes_per_s > rates.stated) device_ = Limit{rates.stated, links};
    if (!device_most_ || device_most_->bytes_per_s > rates.datasheet) device_most_ = Limit{rates.datasheet, links};
  }
  std::map<int, double> ports;  // by worker
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(i);
    if (node.kind == NodeKind::nic && node.port) ports[node.worker] += node.port->bandwidth_bytes_per_s.value;
    if (node.kind == NodeKind::gpu && node.device && may_reduce_in_switches(*node.device)) switches_reduce_ = true;
  }
  for (const auto& [worker, of_machine] : ports) {
    const double bytes_per_s = nvlink_domain_ * of_machine;
    if (ports_ && ports_->bytes_per_s <= bytes_per_s) continue;
    ports_ = Limit{bytes_per_s, nvlink_domain_ > 1 ? "the network ports of an NVLink domain"
                                                   : fmt::format("the network ports of machine {}", worker)};
  }
}

int LinkLimits::domains_of(int nodes) const {
  return (nodes + nvlink_domain_ - 1) / nvlink_domain_;
}

std::optional<LinkLimits::Limit> LinkLimits::bus_bandwidth(CollectiveKind kind, int devices, int nodes) const {
  if (!device_) return {};
  const double factor = bus_bandwidth_factor(kind, devices);
  const double of_device = least_share_of_device(kind, devices, switches_reduce_);
  Limit limit{factor / of_device * device_->bytes_per_s, device_->links};
  if (of_device < factor) limit.links += ", whose switches reduce";
  if (nodes <= nvlink_domain_ || !ports_) return limit;
  const int domains = domains_of(nodes);
  const double of_domain = kind == CollectiveKind::all_reduce ? bus_bandwidth_factor(kind, domains)
                                                              : least_share_of_machine(kind, devices, domains);
  const double by_ports = factor / of_domain * ports_->bytes_per_s;
  return by_ports < limit.bytes_per_s ? Limit{by_ports, ports_->links} : limit;
}

std::optional<Contradiction> LinkLimits::contradiction(CollectiveKind kind, int devices, int nodes, double bytes,
                                                       double time_s) const {
  const auto check = [&](const std::optional<Limit>& limit, double share) -> std::optional<Contradiction> {
    const double carried = share * bytes / time_s;
    if (!limit || carried <= kTolerance * limit->bytes_per_s) return {};
    return Contradiction{carried, limit->bytes_per_s, limit->links};
  };
  if (auto found = check(device_most_, least_share_of_device(kind, devices, switches_reduce_))) return found;
  if (nodes <= nvlink_domain_) return {};
  return check(ports_, least_share_of_machine(kind, devices, domains_of(nodes)));
}

}  // namespace tandem::calibration
