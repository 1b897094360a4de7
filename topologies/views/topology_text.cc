#include "topologies/views/topology_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "topologies/base/units.h"
#include "topologies/views/machine_groups.h"
#include "topologies/views/paths.h"

namespace tandem {
namespace {

constexpr std::size_t kMostColumns = 40;  // devices of a machine in the table of paths
constexpr std::size_t kMostGroups = 20;   // of equal machines
constexpr std::size_t kMostParts = 8;     // parts of a group that are named

std::string rate_text(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

// Returns the name without the worker's prefix, which is the same for all.
std::string short_name(const Topology& topology, NodeIndex node) {
  const std::string name = topology.node(node).name;
  const std::string prefix = fmt::format("w{}.", topology.worker(node));
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool is_amd(const Topology& topology, NodeIndex node) {
  return topology.device(node) && topology.device(node)->architecture.starts_with("gfx");
}

class Text {
 public:
  explicit Text(const Topology& topology) : topology_(topology), matrix_(paths_of(topology, 0)) {
    for (NodeIndex node = 0; node < topology.node_count(); ++node) {
      if (topology.worker(node) == 0) nodes_.push_back(node);
    }
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link link = topology.link(index);
      neighbours_[link.from].emplace_back(link.to, index);
      neighbours_[link.to].emplace_back(link.from, index);
    }
  }

  std::string write() {
    write_head();
    write_tree();
    write_paths();
    write_rings();
    write_rails();
    write_bisection();
    write_figures();
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  std::size_t count(NodeKind kind) const { return topology_.nodes_of(0, kind).size(); }

  void write_head() {
    line("{}", topology_.name());
    const auto counted = [](auto number, const char* what) {
      return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
    };
    line("  {}: {}, {}, {}", counted(topology_.worker_count(), "machine"), counted(count(NodeKind::gpu), "GPU"),
         counted(count(NodeKind::nic), "NIC"), counted(count(NodeKind::cpu), "processor"));
    if (topology_.facts().nvlink_domain > 1) line("  {} machines share one NVSwitch", topology_.facts().nvlink_domain);
    if (const auto power = topology_.facts().power_w)
      line("  a machine takes {} while it trains", format_quantity(*power, Dimension::watts));
    if (topology_.facts().price) line("  a machine costs {}", price_text(*topology_.facts().price));
    if (!topology_.facts().p2p) line("  GPUs do not reach each other's memory (p2p: false)");
    if (topology_.facts().exchanges_in_turn) line("  two machines send to each other in turn (exchanges: in_turn)");
    if (topology_.facts().share_spread > 0)
      line("  transfers share links unevenly (share_spread: {})", topology_.facts().share_spread);
    std::map<std::string, int> switches;
    for (NodeIndex node = 0; node < topology_.node_count(); ++node) {
      if (topology_.worker(node) == kNoWorker) ++switches[std::string(name_of(topology_.kind(node)))];
    }
    for (const auto& [kind, number] : switches) line("  fabric: {} x {}", number, kind);
    write_domains();
    write_machines();
  }

  static std::string counted_kinds(const Topology& topology, int worker) {
    std::string text;
    for (const auto& [kind, what] :
         {std::pair{NodeKind::gpu, "GPU"}, {NodeKind::nic, "NIC"}, {NodeKind::cpu, "processor"}}) {
      const std::size_t number = topology.nodes_of(worker, kind).size();
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", number, what, number == 1 ? "" : "s");
    }
    return text;
  }

  // Equal machines in one line, and what is odd in the others.
  void write_machines() {
    if (topology_.worker_count() < 2) return;
    const std::vector<MachineGroup> groups = groups_of_machines(topology_);
    line("");
    line("Machines");
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (i == kMostGroups) return line("  and {} other groups", groups.size() - i);
      const MachineGroup& group = groups[i];
      line("  {}: {}{}", text_of_workers(group.workers), counted_kinds(topology_, group.workers.front()),
           group.is_other_kind ? ", with other links or products than the first" : "");
      const std::vector<std::string> odd = texts_of(group.differences);
      for (std::size_t k = 0; k < odd.size() && k < kMostParts; ++k) line("    {}", odd[k]);
      if (odd.size() > kMostParts) line("    and {} other parts", odd.size() - kMostParts);
    }
  }

  // NVLink domains of several machines.
  void write_domains() {
    std::map<std::pair<std::size_t, std::size_t>, int> alike;  // by GPUs and machines
    for (NodeIndex node = 0; node < topology_.node_count(); ++node) {
      if (topology_.kind(node) != NodeKind::nvswitch || topology_.worker(node) != kNoWorker) continue;
      std::set<NodeIndex> gpus;
      std::set<int> machines;
      for (const auto& [other, link] : neighbours_[node]) {
        if (topology_.kind(other) == NodeKind::gpu) gpus.insert(other);
        machines.insert(topology_.worker(other));
      }
      ++alike[{gpus.size(), machines.size()}];
    }
    for (const auto& [size, number] : alike) {
      line("  {} NVLink domain{} of {} GPUs in {} machines", number, number == 1 ? "" : "s", size.first, size.second);
    }
  }

  // --- The tree ---

  std::string described(NodeIndex node) const {
    const Node part = topology_.node(node);
    std::string text = short_name(topology_, node);
    if (part.device) text += "  " + part.device->name;
    if (part.kind == NodeKind::cpu && part.device) text += fmt::format(", {} cores", part.device->cores);
    if (part.kind == NodeKind::nic && part.port) {
      text += "  port of " + rate_text(part.port->bandwidth_bytes_per_s.value);
      if (!part.port->transport.empty()) text += " " + part.port->transport;
    }
    if (part.kind == NodeKind::nic && !part.port) text += "  port unknown";
    return text;
  }

  void write_tree() {
    line("");
    line("Tree");
    std::set<NodeIndex> written;
    for (const NodeIndex node : nodes_) {
      if (topology_.kind(node) == NodeKind::cpu) write_below(node, 1, written, "");
    }
    for (const NodeIndex node : nodes_) {
      const bool is_left = !written.contains(node) && topology_.kind(node) != NodeKind::nvswitch;
      if (is_left) write_below(node, 1, written, "  (no processor above)");
    }
    for (const NodeIndex node : nodes_) {
      if (topology_.kind(node) != NodeKind::nvswitch) continue;
      std::vector<std::string> names;
      for (const auto& [other, link] : neighbours_[node]) names.push_back(short_name(topology_, other));
      line("  {}  joins {}", short_name(topology_, node), fmt::join(names, " "));
    }
    for (const NodeIndex node : nodes_) {
      if (topology_.kind(node) != NodeKind::cpu) continue;
      for (const auto& [other, link] : neighbours_[node]) {
        if (topology_.kind(other) != NodeKind::cpu || other < node) continue;
        line("  {} - {}  {}", short_name(topology_, node), short_name(topology_, other),
             rate_text(topology_.link_model(link).bandwidth_bytes_per_s.value));
      }
    }
  }

  void write_below(NodeIndex root, int level, std::set<NodeIndex>& written, const std::string& note) {
    struct Waiting {
      NodeIndex node;
      int level;
      std::string above;
    };
    std::vector<Waiting> waiting{{root, level, note}};
    while (!waiting.empty()) {
      const Waiting next = waiting.back();
      waiting.pop_back();
      if (!written.insert(next.node).second) continue;
      line("{}{}{}", std::string(static_cast<std::size_t>(next.level) * 2, ' '), described(next.node), next.above);
      const NodeKind kind = topology_.kind(next.node);
      if (kind == NodeKind::gpu || kind == NodeKind::nic) continue;
      auto below = neighbours_[next.node];
      std::reverse(below.begin(), below.end());
      std::set<NodeIndex> seen;
      for (const auto& [other, link] : below) {
        const bool hangs_below =
            is_way_down(link) && topology_.kind(other) != NodeKind::cpu && topology_.worker(other) == 0;
        if (!hangs_below || written.contains(other) || !seen.insert(other).second) continue;
        waiting.push_back(
            {other, next.level + 1, fmt::format("  [{}]", fmt::join(ways_between(next.node, other), ", "))});
      }
    }
  }

  // Between a processor and what hangs below it; POWER has NVLinks there.
  bool is_way_down(LinkIndex index) const {
    const Link link = topology_.link(index);
    if (link.model->kind == LinkKind::pcie || link.model->kind == LinkKind::c2c) return true;
    const bool is_at_cpu = topology_.kind(link.from) == NodeKind::cpu || topology_.kind(link.to) == NodeKind::cpu;
    return link.model->kind == LinkKind::nvlink && is_at_cpu;
  }

  // Returns the links between two nodes, the widest first: "c2c 223.6 GB/s", "pcie 3 GB/s".
  std::vector<std::string> ways_between(NodeIndex above, NodeIndex below) {
    std::multimap<double, std::string, std::greater<>> ways;
    for (const auto& [other, link] : neighbours_[above]) {
      if (other != below || !is_way_down(link)) continue;
      const LinkModel& model = topology_.link_model(link);
      const double rate = model.bandwidth_bytes_per_s.value;
      ways.emplace(rate, fmt::format("{} {}", name_of(model.kind), rate_text(rate)));
    }
    std::vector<std::string> texts;
    for (const auto& [rate, text] : ways) texts.push_back(text);
    return texts;
  }

  // --- Paths ---

  void write_paths() {
    const std::size_t size = matrix_.devices.size();
    if (size < 2) return;
    line("");
    if (size > kMostColumns) return line("Paths: {} devices are too many for a table", size);
    line("Paths, with the GB/s of the narrowest link");
    std::string head = fmt::format("  {:8}", "");
    for (const NodeIndex device : matrix_.devices) head += fmt::format("{:>11}", short_name(topology_, device));
    line("{}", head);
    for (std::size_t from = 0; from < size; ++from) {
      std::string row = fmt::format("  {:8}", short_name(topology_, matrix_.devices[from]));
      for (std::size_t to = 0; to < size; ++to) row += fmt::format("{:>11}", cell(from, to));
      line("{}", row);
    }
    line(
        "  X itself, NV<n> n NVLinks, XGMI, C2C to the processor of its package, PIX one PCIe switch, PXB several, PHB "
        "a");
    line("  processor, SYS several processors, NET several machines, DIS no path");
  }

  std::string cell(std::size_t from, std::size_t to) const {
    const Path& path = matrix_.between(from, to);
    std::string type = path_text(path, is_amd(topology_, matrix_.devices[from]));
    if (path.type == PathType::self || path.type == PathType::none) return type;
    return fmt::format("{} {:.4g}", type, path.bandwidth_bytes_per_s / 1e9);
  }

  void write_rings() {
    const auto rings = nvlink_rings(topology_, 0);
    if (rings.empty()) return;
    line("");
    line("Rings over direct links");
    for (const Ring& ring : rings) {
      std::vector<std::string> names;
      for (const NodeIndex gpu : ring.gpus) names.push_back(short_name(topology_, gpu));
      line("  {}  {} in each direction", fmt::join(names, " "), rate_text(ring.bandwidth_bytes_per_s));
    }
  }

  void write_rails() {
    if (count(NodeKind::gpu) == 0 || count(NodeKind::nic) == 0) return;
    line("");
    line("Rails: the nearest NICs of each GPU");
    for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
      if (topology_.kind(matrix_.devices[i]) != NodeKind::gpu) continue;
      std::vector<std::string> names;
      const auto nearest = nearest_nics(topology_, matrix_, i);
      for (const std::size_t nic : nearest) names.push_back(short_name(topology_, matrix_.devices[nic]));
      line("  {:8}{}{}", short_name(topology_, matrix_.devices[i]), fmt::join(names, " "),
           nearest.empty() ? "none" : "  " + cell(i, nearest.front()));
    }
  }

  void write_bisection() {
    std::vector<NodeIndex> gpus;
    for (int worker = 0; worker < topology_.worker_count(); ++worker) {
      for (const NodeIndex gpu : topology_.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
    }
    if (gpus.size() < 2) return;
    line("");
    if (topology_.node_count() > kMostFlowNodes) return line("Bisection bandwidth: not searched, too many nodes");
    const Bisection bisection = bisection_of(topology_, gpus);
    line("Bisection bandwidth {}, in one direction, by maximum flow over all links",
         rate_text(bisection.bandwidth_bytes_per_s));
    if (!bisection.is_least) return line("  between the first half of the GPUs and the second");
    std::vector<std::string> names;
    for (const NodeIndex gpu : bisection.half) names.push_back(short_name(topology_, gpu));
    line("  the least of all halves: {} and the others", fmt::join(names, " "));
  }

  // --- Figures ---

  void write_figures() {
    line("");
    line("Figures");
    std::set<const void*> seen;
    for (const NodeIndex node : nodes_) {
      const Node part = topology_.node(node);
      if (part.device && seen.insert(part.device.get()).second) write_device(*part.device);
    }
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const auto model = topology_.link(index).model;
      if (seen.insert(model.get()).second) write_link(*model);
    }
    for (const NodeIndex node : nodes_) {
      const auto port = topology_.node(node).port;
      if (port && seen.insert(port.get()).second) write_link(*port);
    }
  }

  void figure(const std::string& name, const Figure& figure, Dimension dimension) {
    if (figure.value == 0 && figure.source.empty()) return;
    const std::string range = figure.has_range() ? fmt::format("{} .. {}: ", format_quantity(figure.low, dimension),
                                                               format_quantity(figure.high, dimension))
                                                 : "";
    line("    {:18}{:>14}  {:8}  {}{}", name, format_quantity(figure.value, dimension), name_of(figure.provenance),
         range, figure.source);
  }

  void write_device(const DeviceModel& model) {
    line("  {}", model.name);
    for (const auto& [dtype, peak] : model.peak_flops_per_s) {
      figure("peak " + std::string(name_of(dtype)), peak, Dimension::flops_per_second);
    }
    figure("memory bandwidth", model.memory_bandwidth_bytes_per_s, Dimension::bytes_per_second);
    figure("memory", model.memory_bytes, Dimension::bytes);
    figure("launch overhead", model.launch_overhead_s, Dimension::seconds);
    figure("op overhead", model.op_overhead_s, Dimension::seconds);
  }

  void write_link(const LinkModel& model) {
    line("  {}{}", model.id.empty() ? std::string(name_of(model.kind)) : model.id,
         model.transport.empty() ? "" : " (" + model.transport + ")");
    figure("bandwidth", model.bandwidth_bytes_per_s, Dimension::bytes_per_second);
    figure("latency", model.latency_s, Dimension::seconds);
    figure("hop latency", model.hop_latency_s, Dimension::seconds);
    figure("advertised latency", model.advertised_latency_s, Dimension::seconds);
  }

  const Topology& topology_;
  PathMatrix matrix_;
  std::vector<NodeIndex> nodes_{};
  std::map<NodeIndex, std::vector<std::pair<NodeIndex, LinkIndex>>> neighbours_{};
  std::string text_{};
};

}  // namespace

std::string topology_text(const Topology& topology) {
  return Text(topology).write();
}

}  // namespace tandem
