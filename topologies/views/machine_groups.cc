#include "topologies/views/machine_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "topologies/base/dtype.h"
#include "topologies/figures.h"

namespace tandem {
namespace {

// A node of a machine by its kind and number, which machines whose nodes have other names have, too.
using PartKey = std::pair<NodeKind, int>;
// A link by its ends, and its number among those between them. The other end of a cable is no part of the machine.
using LinkKey = std::tuple<PartKey, std::optional<PartKey>, int>;

struct Figures {
  std::string text{};            // product and whatever else must be equal
  std::vector<double> values{};  // in the order of names_of()
  auto operator<=>(const Figures&) const = default;
};

struct Machine {
  std::map<PartKey, Figures> nodes{};
  std::map<LinkKey, Figures> links{};

  // Whether both have the same nodes and links of the same products, however fast these are.
  bool is_of_kind(const Machine& other) const { return is_alike(nodes, other.nodes) && is_alike(links, other.links); }

 private:
  template <typename Key>
  static bool is_alike(const std::map<Key, Figures>& some, const std::map<Key, Figures>& others) {
    return std::ranges::equal(some, others, [](const auto& one, const auto& other) {
      return one.first == other.first && one.second.text == other.second.text &&
             one.second.values.size() == other.second.values.size();
    });
  }
};

Figures figures_of(const LinkModel& model, Direction direction) {
  return {fmt::format("{} {} {}", name_of(model.kind), static_cast<int>(direction), model.transport),
          {model.bandwidth_bytes_per_s.value, model.latency_s.value, model.hop_latency_s.value,
           model.advertised_latency_s.value, model.remote_call_s.value, model.remote_call_bytes_per_s.value}};
}

Figures figures_of(const DeviceModel& device) {
  Figures figures{fmt::format("{} {} {}", device.name, device.architecture, device.cores), {}};
  for (const auto& [dtype, peak] : device.peak_flops_per_s) {
    figures.text += fmt::format(" {}", name_of(dtype));
    figures.values.push_back(peak.value);
  }
  for (const auto& [key, figure] : kDeviceFigures) figures.values.push_back((device.*figure).value);
  double rate = 0;  // of measured curves
  for (const DeviceRates& rates : device.rates) {
    for (const GemmSample& sample : rates.gemm) rate = std::max(rate, sample.flops_per_s);
  }
  figures.values.push_back(rate);
  return figures;
}

// What a figure is, and its unit.
struct FigureName {
  std::string what;
  double unit = 1;
  bool is_time = false;
};

const std::vector<FigureName>& names_of_links() {
  static const std::vector<FigureName> kNames{{"GB/s", 1e9},
                                              {"us of latency", 1e-6, true},
                                              {"us of hop latency", 1e-6, true},
                                              {"us of advertised latency", 1e-6, true}};
  return kNames;
}

std::vector<FigureName> names_of(const DeviceModel& device) {
  static const std::map<std::string_view, FigureName> kNames{
      {"memory_bandwidth", {"GB/s of its memory", 1e9}},
      {"memory", {"GB of memory", 1e9}},
      {"boost_clock", {"GHz", 1e9}},
      {"memory_latency", {"ns of latency of its memory", 1e-9, true}},
      {"launch_overhead", {"us to launch", 1e-6, true}},
      {"op_overhead", {"us of overhead of an op", 1e-6, true}},
      {"synchronize", {"us to synchronize", 1e-6, true}},
      {"graph_launch_overhead", {"us to launch in a graph", 1e-6, true}},
      {"graph_op_overhead", {"us of overhead of an op in a graph", 1e-6, true}},
      {"wake_up", {"us to wake up", 1e-6, true}},
      {"wake_call", {"us to wake another thread", 1e-6, true}},
      {"hand_over", {"us to hand over a core", 1e-6, true}},
      {"input_element", {"us for an element of the input", 1e-6, true}},
      {"collective_slowdown", {"of slowdown beside collectives", 1, true}},
      {"gemm_efficiency", {"of efficiency", 1}},
      {"sustained", {"of a product's rate that lasts", 1}},
      {"sustained_quantised", {"of a quantised product's rate that lasts", 1, true}},
  };
  std::vector<FigureName> names;
  for (const auto& [dtype, peak] : device.peak_flops_per_s) {
    names.push_back({fmt::format("TFLOPS of {}", name_of(dtype)), 1e12});
  }
  for (const auto& [key, figure] : kDeviceFigures) names.push_back(kNames.at(key));
  names.push_back({"TFLOPS of its fastest product", 1e12});
  return names;
}

// Numbers what is equal.
template <typename Value>
class Numbers {
 public:
  char32_t of(const Value& value) {
    return numbers_.try_emplace(value, static_cast<char32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Value, char32_t> numbers_{};
};

// Machines are compared by numbers of their models first, so that only one of each group is looked at more closely.
class Machines {
 public:
  explicit Machines(const Topology& topology) : topology_(topology) {
    const auto workers = static_cast<std::size_t>(topology.worker_count());
    std::vector<std::array<int, kKinds>> counts(workers);
    keys_.reserve(topology.node_count());
    for (NodeIndex node = 0; node < topology.node_count(); ++node) {
      const int worker = topology.worker(node);
      const NodeKind kind = topology.kind(node);
      int number = 0;
      if (worker != kNoWorker) number = counts[static_cast<std::size_t>(worker)][static_cast<std::size_t>(kind)]++;
      keys_.push_back({kind, number});
    }
    find_groups(described(workers));
    find_machines();
  }

  std::vector<MachineGroup> groups() {
    for (std::size_t i = 1; i < groups_.size(); ++i) {
      const int worker = groups_[i].workers.front(), usual = groups_.front().workers.front();
      groups_[i].is_other_kind = !machines_.at(worker).is_of_kind(machines_.at(usual));
      if (!groups_[i].is_other_kind) groups_[i].differences = differences(worker, usual);
    }
    return std::move(groups_);
  }

 private:
  static constexpr std::size_t kKinds = static_cast<std::size_t>(NodeKind::network_switch) + 1;

  char32_t number_of(const DeviceModel* device) {
    const auto [known, is_new] = numbers_.try_emplace(device, 0);
    if (is_new) known->second = devices_.of(device != nullptr ? figures_of(*device) : Figures{});
    return known->second;
  }
  char32_t number_of(const LinkModel* link) {
    const auto [known, is_new] = numbers_.try_emplace(link, 0);
    if (is_new) known->second = links_.of(link != nullptr ? figures_of(*link, Direction::duplex) : Figures{});
    return known->second;
  }
  static char32_t number_of(const PartKey& key) {
    return static_cast<char32_t>(static_cast<std::size_t>(key.second) * kKinds + static_cast<std::size_t>(key.first));
  }

  std::u32string described(const Node& node) {
    return {static_cast<char32_t>(node.kind), number_of(node.device.get()), number_of(node.port.get())};
  }
  std::u32string described(const Link& link, NodeIndex mine, NodeIndex other) {
    const bool is_inside = topology_.worker(mine) == topology_.worker(other);
    return {number_of(keys_[mine]), is_inside ? number_of(keys_[other]) + 1 : 0, number_of(link.model.get()),
            static_cast<char32_t>(link.direction)};
  }

  // Returns what each machine has, its links in an order that does not depend on that of the file.
  std::vector<std::u32string> described(std::size_t workers) {
    std::vector<std::u32string> texts(workers);
    std::vector<std::vector<std::u32string>> links(workers);
    std::map<const Topology*, char32_t> added;  // machines of add_machines()
    for (int worker = 0; worker < topology_.machine_count(); ++worker) {
      const Topology& machine = topology_.machine(worker);
      const auto [known, is_new] = added.try_emplace(&machine, static_cast<char32_t>(added.size()));
      texts[static_cast<std::size_t>(worker)] = {known->second};
    }
    for (NodeIndex index = topology_.machine_nodes(); index < topology_.node_count(); ++index) {
      const int worker = topology_.worker(index);
      if (worker != kNoWorker) texts[static_cast<std::size_t>(worker)] += described(topology_.node(index));
    }
    for (LinkIndex index = topology_.machine_links(); index < topology_.link_count(); ++index) {
      const Link link = topology_.link(index);
      const int from = topology_.worker(link.from), to = topology_.worker(link.to);
      if (from != kNoWorker) links[static_cast<std::size_t>(from)].push_back(described(link, link.from, link.to));
      if (to != kNoWorker && to != from) {
        links[static_cast<std::size_t>(to)].push_back(described(link, link.to, link.from));
      }
    }
    for (std::size_t worker = 0; worker < workers; ++worker) {
      std::ranges::sort(links[worker]);
      for (const std::u32string& link : links[worker]) texts[worker] += link;
    }
    return texts;
  }

  void find_groups(const std::vector<std::u32string>& texts) {
    std::unordered_map<std::u32string_view, std::size_t> known;
    for (std::size_t worker = 0; worker < texts.size(); ++worker) {
      const auto [group, is_new] = known.try_emplace(texts[worker], groups_.size());
      if (is_new) groups_.emplace_back();
      groups_[group->second].workers.push_back(static_cast<int>(worker));
    }
    std::ranges::stable_sort(groups_, std::greater<>(), [](const MachineGroup& group) { return group.workers.size(); });
  }

  // Looks closely at the first machine of each group.
  void find_machines() {
    for (const MachineGroup& group : groups_) machines_[group.workers.front()];
    for (NodeIndex index = 0; index < topology_.node_count(); ++index) {
      const auto machine = machines_.find(topology_.worker(index));
      if (machine != machines_.end()) add(index, machine->second);
    }
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const Link link = topology_.link(index);
      const int from = topology_.worker(link.from), to = topology_.worker(link.to);
      if (machines_.contains(from)) add(link, link.from, from == to ? std::optional(link.to) : std::nullopt);
      if (to != from && machines_.contains(to)) add(link, link.to, std::nullopt);
    }
  }

  void add(NodeIndex index, Machine& machine) const {
    const Node node = topology_.node(index);
    Figures& figures = machine.nodes[keys_[index]];
    if (node.device) figures = figures_of(*node.device);
    if (node.port) figures = figures_of(*node.port, Direction::duplex);
  }

  void add(const Link& link, NodeIndex mine, std::optional<NodeIndex> other) {
    Machine& machine = machines_.at(topology_.worker(mine));
    LinkKey key{keys_[mine], other ? std::optional(keys_[*other]) : std::nullopt, 0};
    while (machine.links.contains(key)) ++std::get<int>(key);
    machine.links.emplace(key, figures_of(*link.model, link.direction));
  }

  NodeIndex node_of(int worker, const PartKey& key) const {
    const auto& [kind, number] = key;
    return topology_.nodes_of(worker, kind)[static_cast<std::size_t>(number)];
  }

  std::string name_in_machine(NodeIndex index) const {
    const std::string name = topology_.node(index).name;
    const std::string prefix = fmt::format("w{}.", topology_.worker(index));
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }

  static void compare(const Figures& own, const Figures& usual, const std::vector<FigureName>& names,
                      const MachineDifference& part, std::vector<MachineDifference>& found) {
    for (std::size_t i = 0; i < own.values.size(); ++i) {
      if (own.values[i] == usual.values[i]) continue;
      MachineDifference& one = found.emplace_back(part);
      one.what = names[i].what;
      one.value = own.values[i] / names[i].unit;
      one.usual = usual.values[i] / names[i].unit;
      one.is_time = names[i].is_time;
    }
  }

  std::vector<MachineDifference> differences(int worker, int usual_worker) const {
    const Machine& own = machines_.at(worker);
    const Machine& usual = machines_.at(usual_worker);
    std::vector<MachineDifference> found;
    for (const auto& [key, figures] : own.nodes) {
      const NodeIndex node = node_of(worker, key), usual_node = node_of(usual_worker, key);
      const auto device = topology_.device(node);
      compare(figures, usual.nodes.at(key), device ? names_of(*device) : names_of_links(),
              {node, usual_node, name_in_machine(node), "", 0, 0, false}, found);
    }
    for (const auto& [key, figures] : own.links) {
      const auto& [mine, other, number] = key;
      const NodeIndex node = node_of(worker, mine), usual_node = node_of(usual_worker, mine);
      const std::string end = other ? " - " + name_in_machine(node_of(worker, *other)) : " - the network";
      std::vector<MachineDifference> of_link;
      compare(figures, usual.links.at(key), names_of_links(),
              {node, usual_node, name_in_machine(node) + end, "", 0, 0, false}, of_link);
      for (MachineDifference& one : of_link) {  // a cable is as wide as its port, which is named already
        const auto is_of_port = [&](const MachineDifference& known) {
          return known.node == one.node && known.what == one.what && known.value == one.value;
        };
        if (other || std::ranges::none_of(found, is_of_port)) found.push_back(std::move(one));
      }
    }
    return found;
  }

  const Topology& topology_;
  std::vector<PartKey> keys_{};  // of every node
  std::unordered_map<const void*, char32_t> numbers_{};
  Numbers<Figures> devices_{}, links_{};
  std::vector<MachineGroup> groups_{};
  std::map<int, Machine> machines_{};  // by worker
};

}  // namespace

std::vector<MachineGroup> groups_of_machines(const Topology& topology) {
  return Machines(topology).groups();
}

std::string text_of_workers(const std::vector<int>& workers) {
  std::string text;
  for (std::size_t begin = 0; begin < workers.size();) {
    std::size_t end = begin + 1;
    while (end < workers.size() && workers[end] == workers[end - 1] + 1) ++end;
    text += fmt::format("{}w{}", text.empty() ? "" : ", ", workers[begin]);
    if (end - begin > 1) text += fmt::format("{}w{}", end - begin > 2 ? ".." : ", ", workers[end - 1]);
    begin = end;
  }
  return text;
}

std::vector<std::string> texts_of(const std::vector<MachineDifference>& differences) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < differences.size();) {
    const MachineDifference& first = differences[begin];
    std::size_t end = begin + 1;
    while (end < differences.size() && differences[end].part == first.part) ++end;
    const std::size_t more = end - begin - 1;
    texts.push_back(fmt::format("{}: {:.4g} {} (usual: {:.4g}){}", first.part, first.value, first.what, first.usual,
                                more == 0   ? ""
                                : more == 1 ? ", and 1 more figure"
                                            : fmt::format(", and {} more figures", more)));
    begin = end;
  }
  return texts;
}

}  // namespace tandem
