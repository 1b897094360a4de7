#include "topologies/topology.h"

#include <algorithm>
#include <set>

#include "topologies/base/error.h"

namespace tandem {
namespace {

class Weakest {
 public:
  void see(const Figure& figure) { rank_ = std::min(rank_, strength(figure.provenance)); }
  void see_known(const Figure& figure) {
    if (figure.value > 0) see(figure);
  }
  Provenance provenance() const {
    return rank_ == 0 ? Provenance::assumed : rank_ == 1 ? Provenance::vendor : Provenance::measured;
  }

 private:
  static int strength(Provenance provenance) {
    switch (provenance) {
      case Provenance::assumed:
        return 0;
      case Provenance::vendor:
        return 1;
      case Provenance::measured:
        return 2;
    }
    TANDEM_UNREACHABLE("a Provenance outside its enumerators");
  }
  int rank_ = 2;
};

// Peak rates and efficiency are in use only for dtypes without measured curves.
void see_device(const DeviceModel& model, Weakest& weakest) {
  std::set<DType> measured;
  for (const DeviceRates& rates : model.rates) measured.insert(rates.dtype);
  for (const auto& [dtype, peak] : model.peak_flops_per_s) {
    if (!measured.contains(dtype)) weakest.see(peak);
  }
  if (model.rates.empty()) {
    weakest.see(model.gemm_efficiency);
    weakest.see(model.memory_bandwidth_bytes_per_s);
  }
  weakest.see(model.launch_overhead_s);
  weakest.see(model.op_overhead_s);
  weakest.see(model.synchronize_s);
  weakest.see(model.memory_bytes);
  for (const Figure* figure :
       {&model.graph_launch_overhead_s, &model.graph_op_overhead_s, &model.collective_slowdown}) {
    weakest.see_known(*figure);
  }
  weakest.see_known(model.boost_clock_hz);
  weakest.see_known(model.memory_latency_s);
}

}  // namespace

std::string_view name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::vendor:
      return "vendor";
    case Provenance::assumed:
      return "assumed";
  }
  TANDEM_UNREACHABLE("a Provenance outside its enumerators");
}

std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::cpu:
      return "cpu";
    case NodeKind::gpu:
      return "gpu";
    case NodeKind::pcie_switch:
      return "pcie_switch";
    case NodeKind::nvswitch:
      return "nvswitch";
    case NodeKind::nic:
      return "nic";
    case NodeKind::network_switch:
      return "network_switch";
  }
  TANDEM_UNREACHABLE("a NodeKind outside its enumerators");
}

std::string_view name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::c2c:
      return "c2c";
    case LinkKind::cpu_interconnect:
      return "cpu_interconnect";
    case LinkKind::network:
      return "network";
  }
  TANDEM_UNREACHABLE("a LinkKind outside its enumerators");
}

NodeIndex Topology::add_node(Node node) {
  const auto index = static_cast<NodeIndex>(nodes_.size());
  const bool added = by_name_.emplace(node.name, index).second;
  TANDEM_CHECK(added, "two nodes named '" + node.name + "'");
  TANDEM_CHECK(node.worker >= kNoWorker && node.worker <= worker_count(), "a gap in the numbers of the workers");
  if (node.worker != kNoWorker) {
    if (node.worker == worker_count()) workers_.emplace_back();
    workers_[static_cast<std::size_t>(node.worker)].push_back(index);
  }
  nodes_.push_back(std::move(node));
  return index;
}

LinkIndex Topology::add_link(NodeIndex from, NodeIndex to, std::shared_ptr<const LinkModel> model,
                             Direction direction) {
  TANDEM_CHECK(from < nodes_.size() && to < nodes_.size(), "a link to a node that does not exist");
  TANDEM_CHECK(from != to, "a link from '" + nodes_[from].name + "' to itself");
  TANDEM_CHECK(model != nullptr, "a link without a model");
  TANDEM_CHECK(model->bandwidth_bytes_per_s.value > 0 && model->latency_s.value >= 0, "a link without a bandwidth");
  const auto index = static_cast<LinkIndex>(links_.size());
  links_.push_back({from, to, direction, std::move(model)});
  return index;
}

std::optional<NodeIndex> Topology::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::vector<NodeIndex> Topology::nodes_of(int worker, NodeKind kind) const {
  TANDEM_CHECK(worker >= 0 && worker < worker_count(), "no worker " + std::to_string(worker));
  std::vector<NodeIndex> found;
  for (const NodeIndex index : workers_[static_cast<std::size_t>(worker)]) {
    if (nodes_[index].kind == kind) found.push_back(index);
  }
  return found;
}

Provenance Topology::provenance() const {
  if (nodes_.empty()) return Provenance::assumed;
  Weakest weakest;
  std::set<const void*> seen;  // thousands of nodes share a few models
  for (const Node& node : nodes_) {
    if (node.device && seen.insert(node.device.get()).second) see_device(*node.device, weakest);
  }
  for (const Link& link : links_) {
    if (!seen.insert(link.model.get()).second) continue;
    weakest.see(link.model->bandwidth_bytes_per_s);
    weakest.see(link.model->latency_s);
    weakest.see_known(link.model->hop_latency_s);
  }
  return weakest.provenance();
}

}  // namespace tandem
