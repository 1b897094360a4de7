#include "topologies/topology.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr double kRemoteCallS = 60e-6, kRemoteCallBytesPerS = 0.8e9;

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
  for (const Figure* figure : {&model.graph_launch_overhead_s, &model.graph_op_overhead_s, &model.wake_up_s,
                               &model.wake_call_s, &model.hand_over_s, &model.input_element_s,
                               &model.collective_slowdown, &model.sustained, &model.sustained_quantised}) {
    weakest.see_known(*figure);
  }
  weakest.see_known(model.boost_clock_hz);
  weakest.see_known(model.memory_latency_s);
}

std::string machine_prefix(int worker) {
  return "w" + std::to_string(worker) + ".";
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

void Topology::add_machines(std::shared_ptr<const Topology> machine, int count) {
  TANDEM_REQUIRE(node_count() == 0 && count > 0, "machines are added first");
  TANDEM_REQUIRE(machine->worker_count() == 1 && machine->machines_ == 0, "a machine of several workers");
  TANDEM_REQUIRE(machine->workers_.front().size() == machine->node_count(), "a machine with nodes of no worker");
  machine_ = std::move(machine);
  machines_ = count;
  nodes_of_machine_ = static_cast<NodeIndex>(machine_->node_count());
  links_of_machine_ = static_cast<LinkIndex>(machine_->link_count());
}

NodeIndex Topology::add_node(Node node) {
  const auto index = static_cast<NodeIndex>(node_count());
  TANDEM_REQUIRE(node.worker >= kNoWorker && node.worker <= worker_count(), "a gap in the numbers of the workers");
  TANDEM_REQUIRE(node.worker == kNoWorker || node.worker >= machines_, "a further node of a machine");
  const bool added = by_name_.emplace(node.name, index).second;
  TANDEM_REQUIRE(added, "two nodes named '" + node.name + "'");
  if (node.worker != kNoWorker) {
    if (node.worker == worker_count()) workers_.emplace_back();
    workers_[static_cast<std::size_t>(node.worker - machines_)].push_back(index);
  }
  nodes_.push_back(std::move(node));
  return index;
}

LinkIndex Topology::add_link(NodeIndex from, NodeIndex to, std::shared_ptr<const LinkModel> model,
                             Direction direction) {
  TANDEM_REQUIRE(from < node_count() && to < node_count(), "a link to a node that does not exist");
  TANDEM_REQUIRE(from != to, "a link from '" + node(from).name + "' to itself");
  TANDEM_REQUIRE(model != nullptr, "a link without a model");
  TANDEM_REQUIRE(model->bandwidth_bytes_per_s.value > 0 && model->latency_s.value >= 0, "a link without a bandwidth");
  const auto index = static_cast<LinkIndex>(link_count());
  links_.push_back({from, to, direction, std::move(model)});
  return index;
}

const Topology& Topology::changed_or_like_others(int worker) const {
  const auto changed = changed_.find(worker);
  return changed == changed_.end() ? *machine_ : *changed->second;
}

Topology& Topology::changed_machine(int worker) {
  std::shared_ptr<Topology>& changed = changed_[worker];
  if (!changed) {
    changed = std::make_shared<Topology>(*machine_);
  } else if (changed.use_count() > 1) {  // a copy of this topology, or an alike machine, has it, too
    changed = std::make_shared<Topology>(*changed);
  }
  return *changed;
}

void Topology::set_device(NodeIndex index, std::shared_ptr<const DeviceModel> device) {
  if (index >= machine_nodes()) {
    nodes_[index - machine_nodes()].device = std::move(device);
  } else {
    changed_machine(worker(index)).nodes_[index % nodes_of_machine_].device = std::move(device);
  }
}

void Topology::set_port(NodeIndex nic, std::shared_ptr<const LinkModel> port) {
  if (nic >= machine_nodes()) {
    nodes_[nic - machine_nodes()].port = std::move(port);
  } else {
    changed_machine(worker(nic)).nodes_[nic % nodes_of_machine_].port = std::move(port);
  }
}

void Topology::share_alike_machines() {
  std::map<std::vector<const void*>, std::shared_ptr<Topology>> known;
  for (auto& [worker, machine] : changed_) {
    std::vector<const void*> models;
    for (const Node& node : machine->nodes_) models.insert(models.end(), {node.device.get(), node.port.get()});
    for (const Link& link : machine->links_) models.push_back(link.model.get());
    machine = known.try_emplace(std::move(models), machine).first->second;
  }
}

void Topology::replace_devices(const OtherDevice& other) {
  std::map<std::pair<NodeKind, const DeviceModel*>, std::shared_ptr<const DeviceModel>> made;
  const auto replace_in = [&](std::vector<Node>& nodes) {
    for (Node& node : nodes) {
      if (!node.device) continue;
      const auto [place, is_new] = made.try_emplace({node.kind, node.device.get()});
      if (is_new) place->second = other(node.kind, *node.device);
      if (place->second) node.device = place->second;
    }
  };
  const auto replaced = [&](const Topology& machine) {
    auto copy = std::make_shared<Topology>(machine);
    replace_in(copy->nodes_);
    return copy;
  };
  if (machine_) machine_ = replaced(*machine_);
  for (auto& [worker, machine] : changed_) machine = replaced(*machine);
  replace_in(nodes_);
}

void Topology::replace_links(const OtherLink& other) {
  std::map<const LinkModel*, std::shared_ptr<const LinkModel>> made;
  const auto replace = [&](std::shared_ptr<const LinkModel>& model) {
    if (!model) return;
    const auto [place, is_new] = made.try_emplace(model.get());
    if (is_new) place->second = other(*model);
    if (place->second) model = place->second;
  };
  const auto replace_in = [&](Topology& part) {
    for (Node& node : part.nodes_) replace(node.port);
    for (Link& link : part.links_) replace(link.model);
  };
  const auto replaced = [&](const Topology& machine) {
    auto copy = std::make_shared<Topology>(machine);
    replace_in(*copy);
    return copy;
  };
  if (machine_) machine_ = replaced(*machine_);
  for (auto& [worker, machine] : changed_) machine = replaced(*machine);
  replace_in(*this);
}

void Topology::set_link_model(LinkIndex index, std::shared_ptr<const LinkModel> model) {
  if (index >= machine_links()) {
    links_[index - machine_links()].model = std::move(model);
  } else {
    const auto worker = static_cast<int>(index / links_of_machine_);
    changed_machine(worker).links_[index % links_of_machine_].model = std::move(model);
  }
}

Node Topology::node(NodeIndex index) const {
  Node found = like(index);
  if (index >= machine_nodes()) return found;
  found.worker = worker(index);
  found.name = machine_prefix(found.worker) + found.name;
  return found;
}

Link Topology::link(LinkIndex index) const {
  Link found = like_link(index);
  if (index >= machine_links()) return found;
  const NodeIndex first = index / links_of_machine_ * nodes_of_machine_;
  found.from += first;
  found.to += first;
  return found;
}

std::optional<NodeIndex> Topology::find(std::string_view name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  const std::size_t dot = name.find('.');
  int worker = 0;
  if (machines_ == 0 || dot == std::string_view::npos || !name.starts_with('w')) return std::nullopt;
  std::from_chars(name.data() + 1, name.data() + dot, worker);
  if (worker < 0 || worker >= machines_ || !name.starts_with(machine_prefix(worker))) return std::nullopt;
  const auto place = machine_->find(name.substr(dot + 1));
  if (!place) return std::nullopt;
  return static_cast<NodeIndex>(worker) * nodes_of_machine_ + *place;
}

std::vector<NodeIndex> Topology::nodes_of(int worker, NodeKind kind) const {
  TANDEM_REQUIRE(worker >= 0 && worker < worker_count(), "no worker " + std::to_string(worker));
  std::vector<NodeIndex> found;
  if (worker < machines_) {
    for (NodeIndex place = 0; place < nodes_of_machine_; ++place) {
      if (machine_->nodes_[place].kind == kind) {
        found.push_back(static_cast<NodeIndex>(worker) * nodes_of_machine_ + place);
      }
    }
    return found;
  }
  for (const NodeIndex index : workers_[static_cast<std::size_t>(worker - machines_)]) {
    if (this->kind(index) == kind) found.push_back(index);
  }
  return found;
}

std::string MachineFacts::disturbance() const {
  const auto found = measured_with.find("disturbed");
  return found == measured_with.end() ? "" : found->second;
}

// They depend on the servers' software more than on the network: half or twice as much is possible.
Figure usual_remote_call_s() {
  return {.value = kRemoteCallS,
          .source = "a unary call of gRPC over sockets: 61 us, grpc/grpc commit b3889585a1f9",
          .low = kRemoteCallS / 2,
          .high = kRemoteCallS * 2};
}

Figure usual_remote_call_bytes_per_s() {
  return {.value = kRemoteCallBytesPerS,
          .source = "tensors over gRPC, tensorflow/tensorflow#6116 (2017-08-09)",
          .low = kRemoteCallBytesPerS / 2,
          .high = kRemoteCallBytesPerS * 2};
}

Provenance Topology::provenance() const {
  if (node_count() == 0) return Provenance::assumed;
  Weakest weakest;
  std::set<const void*> seen;  // thousands of nodes share a few models
  std::vector<const Topology*> parts = {this};
  if (machine_) parts.push_back(machine_.get());
  for (const auto& [worker, machine] : changed_) parts.push_back(machine.get());
  for (const Topology* part : parts) {
    for (const Node& node : part->nodes_) {
      if (node.device && seen.insert(node.device.get()).second) see_device(*node.device, weakest);
    }
    for (const Link& link : part->links_) {
      if (!seen.insert(link.model.get()).second) continue;
      weakest.see(link.model->bandwidth_bytes_per_s);
      weakest.see(link.model->latency_s);
      weakest.see_known(link.model->hop_latency_s);
      weakest.see_known(link.model->advertised_latency_s);
    }
  }
  return weakest.provenance();
}

}  // namespace tandem
