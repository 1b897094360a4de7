#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "topologies/views/odd_parts.h"
#include "topologies/views/paths.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

// No link of today is outside these bounds.
constexpr double kLeastRate = 1e6;    // 8 Mb/s
constexpr double kMostRate = 20e12;   // NCCL gives 5 TB/s to connections that cost nothing
constexpr double kMostLatency = 0.1;  // seconds

// The network between machines. A machine carries no traffic between two others, so two machines have a path only if
// both are attached to the same connected part of the fabric. Machines attached to the same parts form a group.
class Network {
 public:
  explicit Network(const Topology& topology)
      : topology_(topology), parts_(topology.node_count()), has_cable_(topology.node_count()) {
    std::iota(parts_.begin(), parts_.end(), NodeIndex{0});
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const bool is_network = topology.link_model(index).kind == LinkKind::network;
      if (is_network || index >= topology.machine_links()) add(topology.link(index), is_network);
    }
    find_groups();
  }

  bool has_cable(NodeIndex node) const { return has_cable_[node]; }

  // The number of pairs of machines without a path, and one such pair.
  struct Gap {
    std::int64_t pairs = 0;
    int from = 0, to = 0;
  };
  Gap gap() const {
    Gap gap;
    std::int64_t ends = 0;
    std::vector<std::size_t> reached_by(groups_.size(), groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      std::int64_t others = topology_.worker_count() - (groups_[i].parts.empty() ? 1 : 0);
      for (const NodeIndex part : groups_[i].parts) {
        for (const std::size_t j : groups_at_.at(part)) {
          if (reached_by[j] != i) others -= groups_[j].machines;
          reached_by[j] = i;
        }
      }
      if (ends == 0 && others > 0) {
        gap.from = groups_[i].first;
        gap.to = one_without(reached_by, i);
      }
      ends += others * groups_[i].machines;
    }
    gap.pairs = ends / 2;
    return gap;
  }

 private:
  struct Group {
    std::vector<NodeIndex> parts{};
    std::int64_t machines = 0;
    int first = 0, last = 0;
  };

  NodeIndex part_of(NodeIndex node) {
    while (parts_[node] != node) node = parts_[node] = parts_[parts_[node]];
    return node;
  }

  void add(const Link& link, bool is_network) {
    const int from = topology_.worker(link.from), to = topology_.worker(link.to);
    if (is_network || from != to) has_cable_[link.from] = has_cable_[link.to] = true;
    if (from == kNoWorker && to == kNoWorker) {
      parts_[part_of(link.from)] = part_of(link.to);
    } else if (from != kNoWorker && to != kNoWorker && from != to) {  // a cable between two machines
      const auto cable = static_cast<NodeIndex>(parts_.size());
      parts_.push_back(cable);
      joins_.emplace_back(from, cable);
      joins_.emplace_back(to, cable);
    } else if (from != to) {
      joins_.emplace_back(from == kNoWorker ? to : from, from == kNoWorker ? link.from : link.to);
    }
  }

  void find_groups() {
    std::vector<std::vector<NodeIndex>> parts(static_cast<std::size_t>(topology_.worker_count()));
    for (const auto& [worker, node] : joins_) parts[static_cast<std::size_t>(worker)].push_back(part_of(node));
    std::map<std::vector<NodeIndex>, std::size_t> known;
    for (std::size_t worker = 0; worker < parts.size(); ++worker) {
      std::vector<NodeIndex>& own = parts[worker];
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      const auto [group, is_new] = known.emplace(std::move(own), groups_.size());
      if (is_new) {
        groups_.push_back({group->first, 0, static_cast<int>(worker), 0});
        for (const NodeIndex part : group->first) groups_at_[part].push_back(group->second);
      }
      ++groups_[group->second].machines;
      groups_[group->second].last = static_cast<int>(worker);
    }
  }

  // Returns a machine that group `from` does not reach: one of another group, or the second one of a group that is
  // attached to no part.
  int one_without(const std::vector<std::size_t>& reached_by, std::size_t from) const {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (i != from && reached_by[i] != from) return groups_[i].first;
    }
    return groups_[from].last;
  }

  const Topology& topology_;
  std::vector<NodeIndex> parts_;  // a forest: the root of a node is its part
  std::vector<bool> has_cable_;
  std::vector<std::pair<int, NodeIndex>> joins_{};
  std::vector<Group> groups_{};
  std::map<NodeIndex, std::vector<std::size_t>> groups_at_{};
};

class Check {
 public:
  explicit Check(const Topology& topology) : topology_(topology), matrix_(paths_of(topology, 0)) {}

  std::vector<TopologyFinding> find() {
    check_rates();
    check_gpus();
    check_nics();
    check_twins();
    for (const std::string& text : odd_parts_of(topology_, matrix_, slower_)) problem("{}", text);
    if (topology_.worker_count() > 1) check_network();
    return std::move(findings_);
  }

 private:
  template <typename... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    findings_.push_back({true, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }
  template <typename... Arguments>
  void missing(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    findings_.push_back({false, fmt::format(format, std::forward<Arguments>(arguments)...)});
  }

  std::string name(std::size_t device) const { return topology_.node(matrix_.devices[device]).name; }
  bool is_gpu(std::size_t device) const { return topology_.kind(matrix_.devices[device]) == NodeKind::gpu; }

  void check_rates() {
    std::map<const LinkModel*, bool> seen;
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const LinkModel& model = topology_.link_model(index);
      if (!seen.emplace(&model, true).second) continue;
      const double rate = model.bandwidth_bytes_per_s.value;
      const double latency_s = model.latency_s.value;
      const bool is_stated = !model.latency_s.source.empty();
      const std::string id = model.id.empty() ? std::string(name_of(model.kind)) : model.id;
      if (rate < kLeastRate || rate > kMostRate) problem("link model '{}' has {:.4g} GB/s", id, rate / 1e9);
      if (latency_s > kMostLatency) problem("link model '{}' has a latency of {:.4g} s", id, latency_s);
      if (model.kind == LinkKind::network && latency_s == 0 && !is_stated)
        missing("link model '{}' has no latency", id);
    }
  }

  void check_gpus() {
    if (topology_.nodes_of(0, NodeKind::gpu).empty()) missing("the machine has no GPU");
    std::map<const DeviceModel*, bool> seen;
    for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
      if (!is_gpu(i)) continue;
      const auto& device = topology_.device(matrix_.devices[i]);
      if (device && seen.emplace(device.get(), true).second) check_device(*device);
      for (std::size_t j = 0; j < i; ++j) {
        if (is_gpu(j) && matrix_.between(i, j).type == PathType::none) {
          problem("no path between '{}' and '{}'", name(j), name(i));
        }
      }
    }
  }

  void check_device(const DeviceModel& device) {
    if (device.architecture.empty()) missing("'{}' has no architecture, which NCCL's choices need", device.name);
    if (device.memory_bytes.value == 0) missing("'{}' has no size of memory", device.name);
    if (device.peak_flops_per_s.empty() && device.rates.empty()) missing("'{}' has no peak rate", device.name);
  }

  void check_nics() {
    for (std::size_t nic = 0; nic < matrix_.devices.size(); ++nic) {
      if (is_gpu(nic)) continue;
      const auto port = topology_.node(matrix_.devices[nic]).port;
      if (!port) missing("NIC '{}' has no port: it joins no cluster", name(nic));
      bool is_connected = nic == 0 || !is_gpu(0);
      for (std::size_t gpu = 0; gpu < matrix_.devices.size() && is_gpu(gpu); ++gpu) {
        is_connected = is_connected || matrix_.between(gpu, nic).type != PathType::none;
      }
      if (!is_connected) problem("NIC '{}' is not connected to any GPU", name(nic));
      if (!port || !is_connected) continue;
      check_nearest(nic, port->bandwidth_bytes_per_s.value);
    }
  }

  // The GPU nearest to a NIC should reach it as fast as the NIC's port allows.
  void check_nearest(std::size_t nic, double port) {
    for (std::size_t gpu = 0; gpu < matrix_.devices.size() && is_gpu(gpu); ++gpu) {
      const auto nearest = nearest_nics(topology_, matrix_, gpu);
      if (std::find(nearest.begin(), nearest.end(), nic) == nearest.end()) continue;
      const Path& path = matrix_.between(gpu, nic);
      if (path.type > PathType::switches || path.bandwidth_bytes_per_s >= port * 0.9) continue;
      return problem("'{}' reaches its NIC '{}' with {:.4g} GB/s, less than the {:.4g} GB/s of its port", name(gpu),
                     name(nic), path.bandwidth_bytes_per_s / 1e9, port / 1e9);
    }
  }

  // Compares GPUs of one product in machines that have as many of them, and NICs at one place of machines with as many
  // and with the same GPUs.
  void check_twins() {
    const RatesOfLinks rates(topology_);
    std::map<std::tuple<std::size_t, std::string, std::string>, Rates> gpus_alike;  // GPUs, product, what is compared
    std::map<std::tuple<std::size_t, std::string, std::size_t>, Rates> nics_alike;  // NICs, GPUs' product, place
    int rank = 0;
    for (int worker = 0; worker < topology_.worker_count(); ++worker) {
      const auto gpus = topology_.nodes_of(worker, NodeKind::gpu), nics = topology_.nodes_of(worker, NodeKind::nic);
      for (const NodeIndex gpu : gpus) {
        const std::string product = product_of(gpu);
        for (const auto& [kind, what] : {std::pair{LinkKind::nvlink, "GB/s of NVLink"},
                                         {LinkKind::pcie, "GB/s of PCIe"},
                                         {LinkKind::c2c, "GB/s of C2C"}}) {
          gpus_alike[{gpus.size(), product, what}][rates.of(gpu, kind) / 1e9].push_back({gpu, rank});
        }
        if (const auto& device = topology_.device(gpu)) {
          gpus_alike[{gpus.size(), product, "TFLOPS as " + product}][fastest(*device) / 1e12].push_back({gpu, rank});
        }
        ++rank;
      }
      const std::string product = gpus.empty() ? "" : product_of(gpus.front());
      for (std::size_t i = 0; i < nics.size(); ++i) {
        const double gbs = rates.of(nics[i], LinkKind::network) / 1e9;
        if (gbs > 0) nics_alike[{nics.size(), product, i}][gbs].push_back({nics[i], -1});
      }
    }
    for (const auto& [alike, groups] : gpus_alike) report_twins(groups, std::get<2>(alike), "GPU");
    for (const auto& [alike, groups] : nics_alike) report_twins(groups, "GB/s of network", "NIC");
  }

  std::string product_of(NodeIndex gpu) const {
    const auto& device = topology_.device(gpu);
    return device ? device->name : "";
  }

  // In a type that tensors have.
  static double fastest(const DeviceModel& device) {
    double most = 0;
    for (const auto& [dtype, peak] : device.peak_flops_per_s) {
      if (dtype != DType::fp8 && dtype != DType::fp4) most = std::max(most, peak.value);
    }
    return most;
  }

  // The rates of all links of one kind at each node.
  class RatesOfLinks {
   public:
    explicit RatesOfLinks(const Topology& topology) {
      for (LinkIndex index = 0; index < topology.link_count(); ++index) {
        const Link link = topology.link(index);
        for (const NodeIndex end : {link.from, link.to}) {
          if (topology.kind(end) != NodeKind::gpu && topology.kind(end) != NodeKind::nic) continue;
          rates_[{end, link.model->kind}] += link.model->bandwidth_bytes_per_s.value;
        }
      }
    }
    double of(NodeIndex node, LinkKind kind) const {
      const auto found = rates_.find({node, kind});
      return found == rates_.end() ? 0 : found->second;
    }

   private:
    std::map<std::pair<NodeIndex, LinkKind>, double> rates_;
  };

  struct Twin {
    NodeIndex node = 0;
    int rank = -1;  // of a GPU, if every GPU is one
  };
  using Rates = std::map<double, std::vector<Twin>>;

  void report_twins(const Rates& groups, const std::string& what, std::string_view kind) {
    if (groups.size() < 2) return;
    const auto& [most, twins] = *groups.rbegin();
    for (const auto& [rate, less] : groups) {
      if (rate > most * 0.99) continue;
      for (const Twin& twin : less) slower_.insert(twin.node);
      const Twin& first = less.front();
      const bool has_rank = first.rank >= 0 && topology_.worker_count() > 1;
      problem("'{}'{} has {:.4g} {}, its twin '{}' {:.4g} ({} {}{} less)", topology_.node(first.node).name,
              has_rank ? fmt::format(" (rank {})", first.rank) : "", rate, what,
              topology_.node(twins.front().node).name, most, less.size(), kind, less.size() == 1 ? " has" : "s have");
    }
  }

  void check_network() {
    const Network network(topology_);
    check_cables(network);
    const Network::Gap gap = network.gap();
    const std::int64_t machines = topology_.worker_count();
    if (gap.pairs == 0) return;
    problem("no path between the machines of '{}' and '{}' ({} of {} pairs of machines have none)", a_node_of(gap.from),
            a_node_of(gap.to), gap.pairs, machines * (machines - 1) / 2);
  }

  // Collects the NICs at one place of all machines, without those that have no port for a cable.
  struct Twins {
    std::vector<NodeIndex> with_cable{}, without{};
  };
  std::vector<Twins> twins_of_nics(const Network& network) const {
    std::vector<Twins> twins;
    for (int worker = 0; worker < topology_.worker_count(); ++worker) {
      const auto nics = topology_.nodes_of(worker, NodeKind::nic);
      twins.resize(std::max(twins.size(), nics.size()));
      for (std::size_t i = 0; i < nics.size(); ++i) {
        if (!topology_.node(nics[i]).port) continue;
        (network.has_cable(nics[i]) ? twins[i].with_cable : twins[i].without).push_back(nics[i]);
      }
    }
    return twins;
  }

  // A fabric may leave NICs out, the same ones on all machines.
  void check_cables(const Network& network) {
    std::vector<NodeIndex> odd, left_out;
    NodeIndex twin = 0;
    for (const Twins& one : twins_of_nics(network)) {
      std::vector<NodeIndex>& group = one.with_cable.empty() ? left_out : odd;
      if (odd.empty() && !one.with_cable.empty()) twin = one.with_cable.front();
      group.insert(group.end(), one.without.begin(), one.without.end());
    }
    if (!odd.empty()) {
      problem("no cable at NIC '{}', though its twin '{}' has one ({} NICs lack theirs)",
              topology_.node(odd.front()).name, topology_.node(twin).name, odd.size());
    }
    if (!left_out.empty()) {
      missing("no cable at NIC '{}', nor at its twins ({} NICs)", topology_.node(left_out.front()).name,
              left_out.size());
    }
  }

  std::string a_node_of(int worker) const {
    using enum NodeKind;
    for (const NodeKind kind : {gpu, cpu, nic, nvswitch, pcie_switch, network_switch}) {
      const auto nodes = topology_.nodes_of(worker, kind);
      if (!nodes.empty()) return topology_.node(nodes.front()).name;
    }
    return "";
  }

  const Topology& topology_;
  PathMatrix matrix_;
  std::set<NodeIndex> slower_{};  // than their twins
  std::vector<TopologyFinding> findings_{};
};

}  // namespace

std::vector<TopologyFinding> check_topology(const Topology& topology) {
  return Check(topology).find();
}

}  // namespace tandem
