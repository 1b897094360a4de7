#include "topologies/generators/cluster.h"

#include <algorithm>
#include <map>

#include "topologies/base/error.h"
#include "topologies/generators/fabric_builder.h"
#include "topologies/network_software.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using LinkModelPointer = std::shared_ptr<const LinkModel>;

void require(bool condition, const Topology& node, const std::string& message) {
  if (!condition) throw ImpossibleError("machine '" + node.name() + "' cannot be built into a cluster: " + message);
}

class ClusterBuilder {
 public:
  ClusterBuilder(const Topology& node, int workers, const Fabric& fabric, std::string name)
      : node_(node), workers_(workers), fabric_(fabric), topology_(std::move(name)) {}

  Topology build() {
    require(workers_ > 0, node_, "needs at least one worker");
    require(node_.worker_count() == 1, node_, "it has " + std::to_string(node_.worker_count()) + " workers, not one");
    for (NodeIndex index = 0; index < node_.node_count(); ++index) {
      require(node_.node(index).worker == 0, node_, "node '" + node_.node(index).name + "' is outside the machine");
    }
    if (workers_ > 1) find_ports();
    if (workers_ > 1 && node_.facts().nvlink_domain == 1) {
      topology_.add_machines(connected_machine(), workers_);
    } else {
      for (int worker = 0; worker < workers_; ++worker) add_worker(worker);
    }
    topology_.facts() = node_.facts();      // with nvlink_domain: so many machines are joined
    topology_.facts().stated_keys.clear();  // of another fabric
    if (workers_ > 1) add_fabric();
    return std::move(topology_);
  }

 private:
  void find_ports() {
    for (const std::string& name : fabric_.nics) {
      const auto nic = node_.find(name);
      require(nic && node_.node(*nic).kind == NodeKind::nic, node_, "it has no NIC '" + name + "'");
    }
    for (const NodeIndex nic : node_.nodes_of(0, NodeKind::nic)) {
      if (!node_.node(nic).port || !is_connected(node_.node(nic).name)) continue;
      nics_.push_back(nic);
      cables_.push_back(cable_of(*node_.node(nic).port));
    }
    require(!nics_.empty(), node_, "it has no NIC with a known port");
  }

  bool is_connected(const std::string& nic) const {
    return fabric_.nics.empty() || std::find(fabric_.nics.begin(), fabric_.nics.end(), nic) != fabric_.nics.end();
  }

  // A NIC's port is the cable plugged into it, so that what the fabric overrides is the same for both.
  void add_worker(int worker) {
    std::vector<NodeIndex>& places = places_.emplace_back();
    for (NodeIndex index = 0; index < node_.node_count(); ++index) {
      const bool is_shared =
          workers_ > 1 && node_.facts().nvlink_domain > 1 && node_.node(index).kind == NodeKind::nvswitch;
      places.push_back(is_shared ? shared_switch(worker, index) : add_part(worker, index));
    }
    for (LinkIndex index = 0; index < node_.link_count(); ++index) {
      const Link link = node_.link(index);
      topology_.add_link(places[link.from], places[link.to], link.model, link.direction);
    }
  }

  // Returns the machine as every worker has it, with names such as "gpu0".
  std::shared_ptr<const Topology> connected_machine() const {
    auto machine = std::make_shared<Topology>(node_.name());
    for (NodeIndex index = 0; index < node_.node_count(); ++index) machine->add_node(part(index));
    for (LinkIndex index = 0; index < node_.link_count(); ++index) {
      const Link link = node_.link(index);
      machine->add_link(link.from, link.to, link.model, link.direction);
    }
    return machine;
  }

  NodeIndex add_part(int worker, NodeIndex index) {
    Node node = part(index);
    node.name.insert(0, "w" + std::to_string(worker) + ".");
    node.worker = worker;
    return topology_.add_node(std::move(node));
  }

  Node part(NodeIndex index) const {
    Node node = node_.node(index);
    if (node.name.starts_with("w0.")) node.name.erase(0, 3);
    const auto nic = std::find(nics_.begin(), nics_.end(), index);
    if (nic != nics_.end()) {
      node.port = cables_[static_cast<std::size_t>(nic - nics_.begin())];
    } else if (workers_ > 1) {
      node.port = nullptr;  // not connected
    }
    return node;
  }

  // Returns the NVSwitch of a worker's NVLink domain.
  NodeIndex shared_switch(int worker, NodeIndex index) {
    const auto [place, is_new] = shared_.try_emplace({worker / node_.facts().nvlink_domain, index}, 0);
    if (is_new) {
      Node node = node_.node(index);
      node.name = "fabric.nvswitch" + std::to_string(shared_.size() - 1);
      node.worker = kNoWorker;
      place->second = topology_.add_node(std::move(node));
    }
    return place->second;
  }

  void add_fabric() {
    std::vector<std::vector<NodeIndex>> nics(static_cast<std::size_t>(workers_));
    for (std::size_t worker = 0; worker < nics.size(); ++worker) {
      const NodeIndex first = static_cast<NodeIndex>(worker) * topology_.nodes_of_machine();
      for (const NodeIndex nic : nics_) nics[worker].push_back(places_.empty() ? first + nic : places_[worker][nic]);
    }
    FabricBuilder(topology_, fabric_, std::move(nics), cables_).build();
  }

  // Returns the model of the cable to a NIC, which all workers share.
  LinkModelPointer cable_of(const LinkModel& port) const {
    auto model = std::make_shared<LinkModel>(port);
    if (fabric_.latency_s) model->latency_s = *fabric_.latency_s;
    if (fabric_.transport) set_transport(*fabric_.transport, *model);
    if (fabric_.hop_latency_s) model->hop_latency_s = *fabric_.hop_latency_s;
    if (fabric_.advertised_latency_s) model->advertised_latency_s = *fabric_.advertised_latency_s;
    if (fabric_.nic_bandwidth_bytes_per_s) model->bandwidth_bytes_per_s = *fabric_.nic_bandwidth_bytes_per_s;
    return model;
  }

  const Topology& node_;
  int workers_;
  Fabric fabric_;
  Topology topology_;
  std::vector<std::vector<NodeIndex>> places_;             // of the machine's nodes, by worker
  std::map<std::pair<int, NodeIndex>, NodeIndex> shared_;  // by NVLink domain and node of the machine
  std::vector<NodeIndex> nics_;                            // the machine's NICs that have a port
  std::vector<LinkModelPointer> cables_;
};

Figure assumed(double value, std::string source) {
  return {value, Provenance::assumed, std::move(source), "", 0};
}

}  // namespace

Topology make_cluster(const Topology& node, int workers, const Fabric& fabric, std::string name) {
  if (name.empty()) name = std::to_string(workers) + "x " + node.name();
  return ClusterBuilder(node, workers, fabric, std::move(name)).build();
}

Topology make_cluster(std::string_view catalog_name, int workers, const Fabric& fabric, std::string name) {
  return make_cluster(load_catalog_node(catalog_name), workers, fabric, std::move(name));
}

Topology make_host(int cores) {
  if (cores < 1) throw Error("a host needs at least one core");
  auto model = std::make_shared<DeviceModel>();
  model->name = "CPU";
  model->id = "cpu";
  model->cores = cores;
  model->peak_flops_per_s[DType::f32] = assumed(64e9, "one AVX2 core at 2 GHz: 32 flop a cycle");
  model->peak_flops_per_s[DType::f64] = assumed(32e9, "one AVX2 core at 2 GHz: 16 flop a cycle");
  model->memory_bandwidth_bytes_per_s = assumed(10e9, "one core of a server");
  model->memory_bytes = assumed(4e9 * cores, "4 GB a core");
  model->launch_overhead_s = assumed(1e-6, "a queue between threads");
  model->op_overhead_s = assumed(1e-6, "a function call and cold caches");
  model->synchronize_s = assumed(5e-6, "waking a thread");
  Topology topology("host with " + std::to_string(cores) + (cores == 1 ? " core" : " cores"));
  Node node;
  node.name = "w0.cpu0";
  node.kind = NodeKind::cpu;
  node.worker = 0;
  node.device = std::move(model);
  topology.add_node(std::move(node));
  return topology;
}

}  // namespace tandem
