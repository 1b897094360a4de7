#include "topologies/readers/fabric_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 24;

// "node2" before "node10".
bool is_before(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      std::size_t end_a = i, end_b = j;
      while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
      while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
      std::string_view one = a.substr(i, end_a - i), other = b.substr(j, end_b - j);
      while (one.size() > 1 && one.front() == '0') one.remove_prefix(1);
      while (other.size() > 1 && other.front() == '0') other.remove_prefix(1);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
      i = end_a;
      j = end_b;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({problem_at(file, kBeginning, std::move(message))});
}

// Returns the machine with plain node names such as "gpu0", as every worker of a cluster has them.
std::shared_ptr<Topology> plain_machine(const Topology& machine) {
  auto plain = std::make_shared<Topology>(machine.name());
  for (NodeIndex index = 0; index < machine.node_count(); ++index) {
    Node node = machine.node(index);
    if (node.name.starts_with("w0.")) node.name = node.name.substr(3);
    node.worker = 0;
    plain->add_node(std::move(node));
  }
  for (LinkIndex index = 0; index < machine.link_count(); ++index) {
    const Link link = machine.link(index);
    plain->add_link(link.from, link.to, link.model, link.direction);
  }
  return plain;
}

class Composer {
 public:
  Composer(const FabricDescription& fabric, const std::string& file, std::vector<std::string>& notes)
      : fabric_(fabric), file_(file), notes_(notes) {}

  Topology compose(const Topology* machine, const std::vector<std::string>& wanted, const std::string& name) {
    choose_hosts(wanted);
    Topology topology(name);
    if (machine != nullptr) {
      const auto plain = plain_machine(*machine);
      if (plain->node_count() * hosts_.size() > kMostNodes) refuse(file_, "more than 16 million nodes");
      for (const NodeIndex nic : plain->nodes_of(0, NodeKind::nic)) {
        if (plain->node(nic).port) nics_.push_back(nic);
      }
      if (nics_.empty()) refuse(file_, "machine '" + machine->name() + "' has no NIC with a known port");
      port_ = plain->node(nics_.front()).port;
      if (machine->facts().nvlink_domain > 1 && hosts_.size() > 1) {
        add_domains(topology, *plain, static_cast<std::size_t>(machine->facts().nvlink_domain));
      } else {
        topology.add_machines(plain, static_cast<int>(hosts_.size()));
      }
      for (const NodeIndex nic : nics_) ports_of_machine_.push_back(plain->node(nic).port);
      for (const CollectiveSample& sample : machine->facts().collectives) {
        if (sample.nodes == 1) topology.facts().collectives.push_back(sample);
      }
      topology.facts().p2p = machine->facts().p2p;
      topology.facts().p2p_is_stated = machine->facts().p2p_is_stated;
      topology.facts().nvlink_domain = machine->facts().nvlink_domain;
      topology.facts().exchanges_in_turn = machine->facts().exchanges_in_turn;
      topology.facts().share_spread = machine->facts().share_spread;
      topology.facts().price = machine->facts().price;
      topology.facts().power_w = machine->facts().power_w;
    }
    add_hosts(topology, machine != nullptr);
    add_switches(topology);
    return topology;
  }

 private:
  // Gives the chosen hosts of the fabric their places in the cluster, by their numbers in the fabric.
  void choose_hosts(const std::vector<std::string>& wanted) {
    std::vector<std::string> order = wanted.empty() ? fabric_.hosts : wanted;
    if (wanted.empty()) std::sort(order.begin(), order.end(), is_before);
    std::map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < fabric_.hosts.size(); ++i) known[fabric_.hosts[i]] = i;
    for (const std::string& host : order) {
      const auto found = known.find(host);
      if (found == known.end()) refuse(file_, "no host '" + host + "'");
      if (!hosts_.emplace(found->second, hosts_.size()).second) refuse(file_, "host '" + host + "' twice");
    }
    if (hosts_.empty()) refuse(file_, "no host");
    ports_.resize(hosts_.size());
    for (const auto& port : fabric_.ports) {
      if (const auto place = hosts_.find(port.host); place != hosts_.end()) ports_[place->second].push_back(&port);
    }
    for (auto& ports : ports_) {
      std::sort(ports.begin(), ports.end(),
                [](const auto* a, const auto* b) { return is_before(a->device, b->device); });
    }
  }

  // Returns the model of a cable that is otherwise like the port at its end.
  std::shared_ptr<const LinkModel> cable(double bytes_per_s, const std::string& source,
                                         const std::shared_ptr<const LinkModel>& port) {
    auto& model = models_[{bytes_per_s, source, port.get()}];
    if (model) return model;
    auto made = std::make_shared<LinkModel>();
    if (port) *made = *port;
    made->kind = LinkKind::network;
    made->id = models_.size() == 1 ? "cable" : "cable_" + std::to_string(models_.size());
    if (!port) {
      made->transport = "infiniband";
      made->latency_s = {0.6e-6, Provenance::assumed, "not in the file; HDR InfiniBand", "", 0};
    }
    made->bandwidth_bytes_per_s = {bytes_per_s, source.empty() ? Provenance::assumed : Provenance::vendor,
                                   source.empty() ? "as wide as the ports below; " + file_ + " does not tell" : source,
                                   "", 0};
    return model = made;
  }

  void add_hosts(Topology& topology, bool has_machine) {
    below_.assign(fabric_.switches.size(), 0);
    for (std::size_t worker = 0; worker < ports_.size(); ++worker) {
      const auto& ports = ports_[worker];
      const bool has_all = ports.size() == 1 && ports.front()->device.empty();
      const std::size_t count = has_machine && has_all ? nics_.size() : ports.size();
      if (has_machine && count != nics_.size() && noted_.insert(count).second) {
        notes_.push_back(fmt::format("{}: hosts with {} ports, but the machine has {} NICs; the first ones are joined",
                                     file_, count, nics_.size()));
      }
      for (std::size_t i = 0; i < (has_machine ? std::min(count, nics_.size()) : count); ++i) {
        const auto& port = *ports[has_all ? 0 : i];
        if (!has_machine && port.bytes_per_s == 0) {
          refuse(file_,
                 "tells no rates: name the machine of its hosts with --complete-with NAME, or use the file as "
                 "cluster: {node: NAME, fabric: ./" +
                     std::filesystem::path(file_).filename().string() + "}");
        }
        const NodeIndex nic =
            has_machine ? nic_of(topology, worker, i) : add_nic(topology, static_cast<int>(worker), i, port);
        const auto& own = has_machine ? ports_of_machine_[i] : port_;
        const double rate = port.bytes_per_s > 0 ? port.bytes_per_s : own->bandwidth_bytes_per_s.value;
        joins_.push_back({nic, port.at, cable(rate, port.bytes_per_s > 0 ? port.source : "the NIC's port", own)});
        below_[port.at] += rate;
      }
    }
  }

  NodeIndex nic_of(const Topology& topology, std::size_t worker, std::size_t number) const {
    const NodeIndex place = nics_[number];
    return places_.empty() ? static_cast<NodeIndex>(worker) * topology.nodes_of_machine() + place
                           : places_[worker][place];
  }

  // Adds machines whose NVSwitches those of a domain share.
  void add_domains(Topology& topology, const Topology& machine, std::size_t most) {
    const std::vector<std::size_t> domains = domains_of_hosts(most);
    std::map<std::pair<std::size_t, NodeIndex>, NodeIndex> shared;
    for (std::size_t worker = 0; worker < domains.size(); ++worker) {
      std::vector<NodeIndex>& places = places_.emplace_back();
      for (NodeIndex index = 0; index < machine.node_count(); ++index) {
        Node node = machine.node(index);
        const bool is_shared = node.kind == NodeKind::nvswitch;
        if (const auto known = shared.find({domains[worker], index}); is_shared && known != shared.end()) {
          places.push_back(known->second);
          continue;
        }
        node.name =
            is_shared ? fmt::format("fabric.nvswitch{}", shared.size()) : fmt::format("w{}.{}", worker, node.name);
        node.worker = is_shared ? kNoWorker : static_cast<int>(worker);
        places.push_back(topology.add_node(std::move(node)));
        if (is_shared) shared[{domains[worker], index}] = places.back();
      }
      for (LinkIndex index = 0; index < machine.link_count(); ++index) {
        const Link link = machine.link(index);
        topology.add_link(places[link.from], places[link.to], link.model, link.direction);
      }
    }
  }

  // Returns the number of the NVLink domain of each worker, of at most so many.
  std::vector<std::size_t> domains_of_hosts(std::size_t most) {
    std::vector<std::size_t> block_of(hosts_.size(), 0);
    for (const auto& [host, place] : hosts_) block_of[place] = fabric_.blocks.empty() ? 0 : fabric_.blocks[host];
    std::map<std::size_t, std::size_t> sizes;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> numbers;  // by block and part of it
    std::vector<std::size_t> domains;
    for (const std::size_t block : block_of) {
      const std::size_t part = sizes[block]++ / most;
      domains.push_back(numbers.emplace(std::pair(block, part), numbers.size()).first->second);
    }
    if (fabric_.blocks.empty()) {
      notes_.push_back(
          fmt::format("{}: assumed: each {} hosts, in their order, share an NVLink domain; the file does "
                      "not tell (Slurm's blocks would)",
                      file_, most));
    } else if (numbers.size() > sizes.size()) {
      notes_.push_back(
          fmt::format("{}: blocks of more than the {} machines of an NVLink domain: divided in the order "
                      "of their hosts",
                      file_, most));
    }
    return domains;
  }

  NodeIndex add_nic(Topology& topology, int worker, std::size_t number, const FabricDescription::Port& port) {
    Node node;
    node.name = fmt::format("w{}.nic{}", worker, number);
    node.kind = NodeKind::nic;
    node.worker = worker;
    node.port = cable(port.bytes_per_s, port.source, port_);
    return topology.add_node(std::move(node));
  }

  // Cables without a width are as wide as all ports below them, so switches are visited from the leaves up.
  void add_switches(Topology& topology) {
    std::vector<NodeIndex> nodes;
    std::map<std::string, int> suffixes;
    for (const std::string& name : fabric_.switches) {
      std::string unique = "fabric." + name;
      for (int& suffix = suffixes.emplace(name, 1).first->second; topology.find(unique);) {
        unique = fmt::format("fabric.{}_{}", name, ++suffix);
      }
      Node node;
      node.name = unique;
      node.kind = NodeKind::network_switch;
      node.worker = kNoWorker;
      nodes.push_back(topology.add_node(std::move(node)));
    }
    for (const Join& join : joins_) topology.add_link(join.nic, nodes[join.at], join.model);
    widen();
    for (const auto& one : fabric_.cables) {
      const double rate = one.bytes_per_s > 0 ? one.bytes_per_s : below_[one.from];
      if (rate > 0) topology.add_link(nodes[one.from], nodes[one.to], cable(rate, one.source, port_));
    }
  }

  void widen() {
    std::vector<int> left(fabric_.switches.size(), 0);
    std::multimap<std::size_t, const FabricDescription::Cable*> up;
    for (const auto& one : fabric_.cables) {
      if (one.bytes_per_s > 0) continue;
      ++left[one.to];
      up.emplace(one.from, &one);
    }
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) done.push_back(i);
    }
    for (std::size_t i = 0; i < done.size(); ++i) {
      for (auto [at, end] = up.equal_range(done[i]); at != end; ++at) {
        below_[at->second->to] += below_[done[i]];
        if (--left[at->second->to] == 0) done.push_back(at->second->to);
      }
    }
    if (!up.empty()) notes_.push_back(file_ + ": assumed: cables between switches as wide as all ports below them");
  }

  struct Join {
    NodeIndex nic;
    std::size_t at;
    std::shared_ptr<const LinkModel> model;
  };

  const FabricDescription& fabric_;
  const std::string& file_;
  std::vector<std::string>& notes_;
  std::map<std::size_t, std::size_t> hosts_{};  // from the fabric's number to the worker
  std::vector<std::vector<const FabricDescription::Port*>> ports_{};
  std::vector<NodeIndex> nics_{};
  std::vector<std::vector<NodeIndex>> places_{};  // of the machine's nodes, by worker; empty: machines added as one
  std::shared_ptr<const LinkModel> port_{};       // of the first NIC
  std::vector<std::shared_ptr<const LinkModel>> ports_of_machine_{};  // of nics_
  std::map<std::tuple<double, std::string, const LinkModel*>, std::shared_ptr<const LinkModel>> models_{};
  std::vector<double> below_{};
  std::vector<Join> joins_{};
  std::set<std::size_t> noted_{};
};

}  // namespace

FabricDescription read_fabric_description(const std::string& file) {
  const std::string text = read_input_file(file);
  if (is_slurm_conf(text)) return parse_slurm_conf(text, file);
  if (is_slurm_yaml(text)) return parse_slurm_yaml(text, file);
  if (is_ibnetdiscover(text)) return parse_ibnetdiscover(text, file);
  refuse(file, "neither the output of ibnetdiscover nor a topology.conf or topology.yaml of Slurm");
}

Topology compose_cluster(const Topology* machine, const FabricDescription& fabric,
                         const std::vector<std::string>& hosts, const std::string& name, const std::string& file,
                         std::vector<std::string>& notes) {
  if (machine != nullptr && machine->worker_count() != 1) refuse(file, "'" + machine->name() + "' is not one machine");
  for (const std::string& note : fabric.notes) notes.push_back(file + ": " + note);
  return Composer(fabric, file, notes).compose(machine, hosts, name);
}

ImportedTopology import_fabric(const FabricDescription& fabric, const std::string& file, const ImportOptions& options) {
  ImportedTopology imported{Topology(""), {}};
  std::optional<Topology> machine;
  const std::string& name = options.complete_with;
  if (!name.empty() && name != kNoMachine) {
    machine = machine_to_complete_with(name);
    imported.notes.push_back(file + ": every host is taken as " + name);
  } else {
    imported.notes.push_back(file + ": hosts have no GPUs; --complete-with NAME names the machine that they are");
  }
  imported.topology = compose_cluster(machine ? &*machine : nullptr, fabric, {},
                                      std::filesystem::path(file).stem().string(), file, imported.notes);
  return imported;
}

}  // namespace tandem
