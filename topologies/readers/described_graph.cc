#include "topologies/readers/described_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "topologies/generators/cluster.h"
#include "topologies/readers/nccl/nccl_rates.h"
#include "topologies/usual_latency.h"

namespace tandem {
namespace {

const std::map<std::string, NodeKind>& kinds() {
  static const std::map<std::string, NodeKind> kWords{{"cpu", NodeKind::cpu},
                                                      {"host", NodeKind::cpu},
                                                      {"numa", NodeKind::cpu},
                                                      {"gpu", NodeKind::gpu},
                                                      {"npu", NodeKind::gpu},
                                                      {"nic", NodeKind::nic},
                                                      {"pcie_switch", NodeKind::pcie_switch},
                                                      {"pcie", NodeKind::pcie_switch},
                                                      {"nvswitch", NodeKind::nvswitch},
                                                      {"network_switch", NodeKind::network_switch},
                                                      {"router", NodeKind::network_switch},
                                                      {"switch", NodeKind::network_switch}};
  return kWords;
}

std::optional<LinkKind> link_kind_of(std::string_view word) {
  for (const LinkKind kind :
       {LinkKind::nvlink, LinkKind::pcie, LinkKind::c2c, LinkKind::cpu_interconnect, LinkKind::network}) {
    if (word == name_of(kind)) return kind;
  }
  return std::nullopt;
}

class Builder {
 public:
  Builder(const DescribedGraph& graph, const std::string& file, const ImportOptions& options, const std::string& name)
      : graph_(graph), file_(file), options_(options), topology_(name) {}

  ImportedTopology build() {
    read_kinds();
    problems_.throw_if_any();
    find_switches();
    find_workers();
    find_devices();
    problems_.throw_if_any();
    add_nodes();
    add_links();
    problems_.throw_if_any();
    add_processors();
    if (borrowed_.machine) topology_.facts().nvlink_domain = nvlink_domain_as_in(*borrowed_.machine, topology_);
    return {std::move(topology_), std::move(notes_)};
  }

 private:
  void problem(const FilePlace& place, std::string message) {
    if (++problem_count_ > 100) return;
    problems_.add(problem_at(file_, place.line > 0 ? place : kBeginning, std::move(message)));
  }
  void note(const std::string& text) {
    const std::string full = file_ + ": " + text;
    if (std::find(notes_.begin(), notes_.end(), full) == notes_.end()) notes_.push_back(full);
  }

  void read_kinds() {
    if (graph_.nodes.empty()) problem(kBeginning, "has no node");
    std::set<std::string> names;
    for (const DescribedNode& node : graph_.nodes) {
      const auto kind = kinds().find(node.kind);
      kinds_.push_back(kind == kinds().end() ? NodeKind::network_switch : kind->second);
      if (kind == kinds().end()) {
        problem(node.place,
                fmt::format("node '{}' has {}; expected kind=gpu, cpu, nic, pcie_switch, nvswitch or switch", node.name,
                            node.kind.empty() ? "no kind" : "kind '" + node.kind + "'"));
      }
      if (!names.insert(node.name).second) problem(node.place, "two nodes named '" + node.name + "'");
    }
    neighbours_.resize(graph_.nodes.size());
    for (const DescribedLink& link : graph_.links) {
      neighbours_[link.from].push_back(link.to);
      neighbours_[link.to].push_back(link.from);
    }
  }

  // A plain switch between GPUs alone is an NVSwitch.
  void find_switches() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].kind != "switch" || neighbours_[i].empty()) continue;
      const bool is_inside = std::all_of(neighbours_[i].begin(), neighbours_[i].end(),
                                         [&](std::size_t other) { return kinds_[other] == NodeKind::gpu; });
      if (is_inside) kinds_[i] = NodeKind::nvswitch;
    }
  }

  bool is_outside(std::size_t node) const { return kinds_[node] == NodeKind::network_switch; }

  LinkKind kind_of(const DescribedLink& link) const {
    if (const auto stated = link_kind_of(link.kind)) return *stated;
    const NodeKind a = kinds_[link.from], b = kinds_[link.to];
    const auto is = [&](NodeKind kind) { return a == kind || b == kind; };
    if (is(NodeKind::network_switch) || (a == NodeKind::nic && b == NodeKind::nic)) return LinkKind::network;
    if (is(NodeKind::nvswitch) || (a == NodeKind::gpu && b == NodeKind::gpu)) return LinkKind::nvlink;
    return a == NodeKind::cpu && b == NodeKind::cpu ? LinkKind::cpu_interconnect : LinkKind::pcie;
  }

  // If no node states its machine, the nodes that are joined without the network form one machine.
  void find_workers() {
    const bool is_stated = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                       [](const DescribedNode& node) { return node.worker.has_value(); });
    std::vector<std::size_t> first(graph_.nodes.size());
    std::iota(first.begin(), first.end(), 0);
    const auto root = [&](std::size_t i) {
      while (first[i] != i) i = first[i] = first[first[i]];
      return i;
    };
    for (const DescribedLink& link : graph_.links) {
      if (is_outside(link.from) || is_outside(link.to) || kind_of(link) == LinkKind::network) continue;
      const auto [low, high] = std::minmax({root(link.from), root(link.to)});
      first[high] = low;
    }
    cables_.resize(graph_.nodes.size());
    for (const DescribedLink& link : graph_.links) {
      if (kind_of(link) != LinkKind::network) continue;
      for (const std::size_t end : {link.from, link.to}) {
        if (!cables_[end]) cables_[end] = link.bytes_per_s;
      }
    }
    std::map<int, int> numbers;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const DescribedNode& node = graph_.nodes[i];
      const int given = node.worker.value_or(is_stated && !is_outside(i) ? 0 : kNoWorker);
      const int key = is_stated ? given : is_outside(i) ? kNoWorker : static_cast<int>(root(i));
      if (key == kNoWorker) {
        workers_.push_back(kNoWorker);
      } else {
        workers_.push_back(numbers.emplace(key, static_cast<int>(numbers.size())).first->second);
      }
    }
  }

  const PciGpu* product_of(const DescribedNode& node) const {
    const PciGpu* product = find_pci_gpu(node.vendor, node.product);
    return product != nullptr || node.device.empty() ? product : find_gpu_named(node.device);
  }

  void find_devices() {
    const PciGpu* product = nullptr;
    bool has_gpus = false, has_unknown = false;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (kinds_[i] != NodeKind::gpu) continue;
      has_gpus = true;
      product = product == nullptr ? product_of(graph_.nodes[i]) : product;
      has_unknown = has_unknown || product_of(graph_.nodes[i]) == nullptr;
    }
    borrowed_ = borrow(options_, file_, product);
    for (const std::string& remark : borrowed_.remarks) note(remark);
    if (!has_gpus || !has_unknown || borrowed_.gpu) return;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const DescribedNode& node = graph_.nodes[i];
      if (kinds_[i] != NodeKind::gpu || device_of(i) != nullptr) continue;
      if (!node.architecture.empty()) {
        return problem(node.place, fmt::format("GPU '{}' has an unknown architecture '{}' (known: {})", node.name,
                                               node.architecture, nccl::known_architectures()));
      }
      return problem(node.place, fmt::format("nothing tells which product GPU '{}' is; give --gpu NAME, such as --gpu "
                                             "h100, or the machine with --complete-with NAME",
                                             node.name));
    }
  }

  std::shared_ptr<const DeviceModel> device_of(std::size_t index) {
    const DescribedNode& node = graph_.nodes[index];
    if (kinds_[index] == NodeKind::cpu) return processor(node);
    if (kinds_[index] != NodeKind::gpu) return nullptr;
    const PciGpu* product = product_of(node);
    auto& model = devices_[product != nullptr ? std::string(product->product) : node.architecture];
    if (model) return model;
    if (product != nullptr) return model = nccl::gpu_of_product(*product);
    if (!node.architecture.empty() && options_.gpu.empty()) model = nccl::gpu_model(node.architecture);
    if (!model && borrowed_.gpu) {
      model = borrowed_.gpu;
      note("assumed: GPUs are " + model->name);
    }
    return model;
  }

  std::shared_ptr<const DeviceModel> processor(const DescribedNode& node) {
    if (node.flops_per_s == 0 && node.cores == 0 && borrowed_.cpu) return borrowed_.cpu;
    auto& model = processors_[{node.cores, node.flops_per_s, node.memory_bytes}];
    if (model) return model;
    const Topology host = make_host(std::max(1, node.cores));
    auto made = std::make_shared<DeviceModel>(*host.device(0));
    if (!node.device.empty()) made->name = node.device;
    if (node.flops_per_s > 0) {
      for (auto& [dtype, peak] : made->peak_flops_per_s) {
        peak = {node.flops_per_s, Provenance::vendor, "in " + file_, "", 0};
      }
    }
    if (node.memory_bytes > 0) made->memory_bytes = {node.memory_bytes, Provenance::vendor, "in " + file_, "", 0};
    return model = made;
  }

  std::string transport_of(std::size_t nic) const {
    const DescribedNode& node = graph_.nodes[nic];
    const PciNic* card = find_pci_nic(node.vendor, node.product);
    return node.transport.empty() && card != nullptr ? std::string(card->transport) : node.transport;
  }
  // A cable has the transport of the NIC at its end.
  std::string transport_of(const DescribedLink& link) const {
    for (const std::size_t end : {link.from, link.to}) {
      if (kinds_[end] == NodeKind::nic) return transport_of(end);
    }
    return "";
  }

  // Returns a NIC's port: the stated one, else one as wide as its cable, else the card's fastest, else the port of the
  // machine from which missing figures are taken.
  std::shared_ptr<const LinkModel> port_of(std::size_t index) {
    const DescribedNode& node = graph_.nodes[index];
    const PciNic* card = find_pci_nic(node.vendor, node.product);
    const std::optional<double> rate = node.port_bytes_per_s ? node.port_bytes_per_s : cables_[index];
    if (rate) {
      return model_of(LinkKind::network, *rate, std::nullopt, NodeKind::nic, NodeKind::network_switch,
                      transport_of(index));
    }
    if (card != nullptr && card->bytes_per_s > 0) return card_port(*card);
    if (borrowed_.port) {
      const std::string unknown =
          node.vendor == 0 ? "" : fmt::format(" for the NIC {:04x}:{:04x}", node.vendor, node.product);
      note(fmt::format("assumed: a port of {:.4g} GB/s{}, as in {}", borrowed_.port->bandwidth_bytes_per_s.value / 1e9,
                       unknown, borrowed_.name));
    }
    return borrowed_.port;
  }

  std::shared_ptr<const LinkModel> card_port(const PciNic& card) {
    auto& model = cards_[&card];
    if (model) return model;
    note(fmt::format("assumed: a port of {:.4g} GB/s, the fastest of {}", card.bytes_per_s / 1e9, card.product));
    auto made = std::make_shared<LinkModel>(fastest_port_of(card));
    made->id = new_id(LinkKind::network);
    return model = made;
  }

  std::string new_id(LinkKind kind) {
    const int number = ++counts_[kind];
    return std::string(name_of(kind)) + (number == 1 ? "" : "_" + std::to_string(number));
  }

  void add_nodes() {
    std::vector<std::size_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return (workers_[a] == kNoWorker ? 1 << 30 : workers_[a]) < (workers_[b] == kNoWorker ? 1 << 30 : workers_[b]);
    });
    places_.resize(order.size());
    for (const std::size_t index : order) {
      Node node;
      node.name = graph_.nodes[index].name;
      node.kind = kinds_[index];
      node.worker = workers_[index];
      node.device = device_of(index);
      if (node.kind == NodeKind::nic) node.port = port_of(index);
      if (node.kind == NodeKind::gpu && !node.device) {
        problem(graph_.nodes[index].place,
                fmt::format("GPU '{}' has an unknown architecture '{}' (known: {})", node.name,
                            graph_.nodes[index].architecture, nccl::known_architectures()));
        continue;
      }
      places_[index] = topology_.add_node(std::move(node));
    }
  }

  // A job needs a processor in each machine, so machines of which only GPUs are described get one.
  void add_processors() {
    for (int worker = 0; worker < topology_.worker_count(); ++worker) {
      const auto gpus = topology_.nodes_of(worker, NodeKind::gpu);
      if (gpus.empty() || !topology_.nodes_of(worker, NodeKind::cpu).empty()) continue;
      Node node;
      node.name = fmt::format("w{}.cpu0", worker);
      while (topology_.find(node.name)) node.name += "_";
      node.kind = NodeKind::cpu;
      node.worker = worker;
      node.device = borrowed_.cpu;
      const NodeIndex cpu = topology_.add_node(std::move(node));
      for (const NodeIndex gpu : gpus) topology_.add_link(cpu, gpu, borrowed_.pcie);
      note("no processor: assumed: one for each machine, joined to its GPUs by PCIe");
    }
  }

  std::shared_ptr<const LinkModel> model_of(LinkKind kind, double rate, std::optional<double> latency_s, NodeKind from,
                                            NodeKind to, const std::string& transport = "") {
    const double usual_s = usual_latency_s(kind, from, to, transport);
    auto& known = models_[{kind, rate, latency_s.value_or(usual_s), latency_s.has_value(), transport}];
    if (known) return known;
    auto model = std::make_shared<LinkModel>();
    model->kind = kind;
    model->id = new_id(kind);
    model->transport = kind == LinkKind::network ? transport : "";
    model->bandwidth_bytes_per_s = {rate, Provenance::vendor, "in " + file_, "", 0};
    model->latency_s = latency_s ? Figure{*latency_s, Provenance::vendor, "in " + file_, "", 0}
                                 : Figure{usual_s, Provenance::assumed, "not in the file", "", 0};
    return known = model;
  }

  std::shared_ptr<const LinkModel> borrowed_link(LinkKind kind) {
    if (kind == LinkKind::pcie) return borrowed_.pcie;
    if (kind == LinkKind::cpu_interconnect) return borrowed_.numa;
    if (kind == LinkKind::network) return borrowed_.port;
    return nullptr;
  }
  // Keeps a latency that the file states.
  std::shared_ptr<const LinkModel> borrowed_link(LinkKind kind, std::optional<double> latency_s) {
    auto borrowed = borrowed_link(kind);
    if (!borrowed || !latency_s) return borrowed;
    auto& known = late_[{kind, *latency_s}];
    if (known) return known;
    auto model = std::make_shared<LinkModel>(*borrowed);
    model->id = new_id(kind);
    model->latency_s = {*latency_s, Provenance::vendor, "in " + file_, "", 0};
    return known = model;
  }

  void add_links() {
    if (!problems_.empty()) return;
    for (const DescribedLink& link : graph_.links) {
      const LinkKind kind = kind_of(link);
      if (!link.kind.empty() && !link_kind_of(link.kind)) {
        problem(link.place,
                "unknown kind of link '" + link.kind + "', expected nvlink, pcie, c2c, cpu_interconnect or network");
      }
      const std::string ends = fmt::format("'{}' - '{}'", graph_.nodes[link.from].name, graph_.nodes[link.to].name);
      if (link.from == link.to) {
        note("a link from " + graph_.nodes[link.from].name + " to itself, left out");
        continue;
      }
      if (link.bytes_per_s && !(*link.bytes_per_s > 0)) {
        problem(link.place, ends + ": its bandwidth must be greater than 0");
        continue;
      }
      const std::string transport = kind == LinkKind::network ? transport_of(link) : "";
      auto model = link.bytes_per_s ? model_of(kind, *link.bytes_per_s, link.latency_s, kinds_[link.from],
                                               kinds_[link.to], transport)
                                    : borrowed_link(kind, link.latency_s);
      if (!model) {
        problem(link.place, ends + " has no bandwidth, expected bw=\"50GB/s\", or a machine with --complete-with NAME");
        continue;
      }
      if (!link.bytes_per_s) {
        note(fmt::format("assumed: {} of {:.4g} GB/s, {}", name_of(kind), model->bandwidth_bytes_per_s.value / 1e9,
                         model->bandwidth_bytes_per_s.source));
      }
      topology_.add_link(places_[link.from], places_[link.to], model, link.direction);
    }
  }

  const DescribedGraph& graph_;
  const std::string& file_;
  const ImportOptions& options_;
  Topology topology_;
  Diagnostics problems_{};
  int problem_count_ = 0;
  std::vector<std::string> notes_{};
  std::vector<NodeKind> kinds_{};
  std::vector<std::vector<std::size_t>> neighbours_{};
  std::vector<int> workers_{};
  std::vector<NodeIndex> places_{};
  std::vector<std::optional<double>> cables_{};  // the rate of a node's first network link
  Borrowed borrowed_{};
  std::map<std::string, std::shared_ptr<const DeviceModel>> devices_{};
  std::map<std::tuple<int, double, double>, std::shared_ptr<const DeviceModel>> processors_{};
  std::map<std::tuple<LinkKind, double, double, bool, std::string>, std::shared_ptr<const LinkModel>> models_{};
  std::map<std::pair<LinkKind, double>, std::shared_ptr<const LinkModel>> late_{};  // borrowed, with a stated latency
  std::map<const PciNic*, std::shared_ptr<const LinkModel>> cards_{};
  std::map<LinkKind, int> counts_{};
};

}  // namespace

ImportedTopology build_described(const DescribedGraph& graph, const std::string& file, const ImportOptions& options,
                                 const std::string& name) {
  return Builder(graph, file, options, name).build();
}

}  // namespace tandem
