#include "topologies/readers/nccl_xml.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <set>

#include "topologies/generators/cluster.h"
#include "topologies/readers/nccl_document.h"
#include "topologies/readers/nccl_gpu_links.h"
#include "topologies/readers/nccl_graph.h"
#include "topologies/readers/nccl_rates.h"

namespace tandem {
namespace {

using nccl::Part;
using nccl::PciClass;
using Element = pugi::xml_node;

constexpr int kMostLevels = 64;

int count_cores(std::string_view affinity) {
  int bits = 0;
  for (const char c : affinity) {
    unsigned digit = 0;
    if (std::from_chars(&c, &c + 1, digit, 16).ec == std::errc{}) bits += std::popcount(digit);
  }
  return std::max(1, bits);
}

class Importer {
 public:
  Importer(std::string_view text, const std::string& file) : document_(text, file, diagnostics_) {}

  Topology import() {
    const Element root = document_.root();
    if (std::string_view(root.name()) != "system") {
      document_.problem(root, std::string("expected the element 'system', found '") + root.name() + "'");
      diagnostics_.throw_if_any();
    }
    const std::int64_t version = document_.required_number(root, "version", 1);
    if (version != 1 && version != 2) {
      document_.problem(root, "unknown version, expected 1 (NCCL) or 2 (RCCL)", "version");
    }
    for (const Element& cpu : root.children("cpu")) read_cpu(cpu);
    if (cpus_.empty()) document_.problem(root, "needs at least one cpu");
    connect_cpus();
    gpu_links_.connect(hosts_.size() == 1);
    for (const auto& [from, target] : pci_links_) connect_pci_link(from, target);
    check_gpus();
    gpu_links_.check();
    diagnostics_.throw_if_any();
    gpu_links_.add_connections();
    return nccl::build_topology(graph_, document_.file());
  }

 private:
  // --- Reading ---

  void read_cpu(const Element& element) {
    Part part;
    part.kind = NodeKind::cpu;
    part.host = read_host(element);
    part.order = static_cast<std::int64_t>(cpus_.size());
    part.element = element;
    document_.required_number(element, "numaid");
    nccl::Cpu cpu;
    cpu.arch = document_.required_text(element, "arch");
    if (cpu.arch == "x86_64") cpu.vendor = document_.required_text(element, "vendor");
    const bool needs_model = cpu.vendor == "GenuineIntel";
    cpu.family =
        needs_model ? document_.required_number(element, "familyid") : document_.number(element, "familyid", 0);
    cpu.model = needs_model ? document_.required_number(element, "modelid") : document_.number(element, "modelid", 0);
    const Topology host = make_host(count_cores(element.attribute("affinity").value()));
    part.device = host.node(0).device;
    const std::size_t index = graph_.add(std::move(part));
    graph_.parts[index].cpu = index;
    cpus_.push_back({index, nccl::numa_rate(cpu)});
    for (const Element& child : element.children()) {
      const std::string_view name = child.name();
      if (name == "pci") read_pci(child, index, index, 1);
      if (name == "nic") read_nic(child, index, index, nccl::kLocal);
    }
  }

  // Hosts are numbered in the order of the file; without a host_hash there is one.
  int read_host(const Element& cpu) {
    const pugi::xml_attribute hash = cpu.attribute("host_hash");
    if (!hash) return host_number(0);
    std::string_view digits = hash.value();
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) {
      document_.problem(cpu, std::string("expected a hex number, found '") + hash.value() + "'", "host_hash");
    }
    return host_number(value);
  }

  int host_number(std::uint64_t hash) { return hosts_.emplace(hash, static_cast<int>(hosts_.size())).first->second; }

  void read_pci(const Element& element, std::size_t parent, std::size_t cpu, int level) {
    if (level > kMostLevels) return document_.problem(element, "nested more than 64 levels deep");
    const auto bus = read_bus(element);
    const PciClass kind = nccl::pci_class(document_.required_text(element, "class"));
    const std::int64_t width = document_.required_number(element, "link_width");
    const double rate = nccl::pci_rate(width, document_.required_text(element, "link_speed"));
    if (width < 0) document_.problem(element, "must not be negative", "link_width");
    if (kind == PciClass::gpu) {
      const Element gpu = element.child("gpu");
      if (gpu) read_gpu(gpu, bus, parent, cpu, rate);
      has_unused_gpu_ = has_unused_gpu_ || !gpu;
    } else if (kind == PciClass::nic) {
      for (const Element& nic : element.children("nic")) read_nic(nic, parent, cpu, rate);
    } else if (kind == PciClass::bridge) {
      read_bridge(element, bus, parent, cpu, rate, level);
    }  // others, and devices nobody uses, are left out as NCCL does
  }

  std::optional<std::uint64_t> read_bus(const Element& element) {
    const std::string text = document_.required_text(element, "busid");
    if (text.empty()) return std::nullopt;
    const auto bus = nccl::bus_number(text);
    if (!bus) document_.problem(element, "expected a bus id such as 0000:c1:00.0, found '" + text + "'", "busid");
    return bus;
  }

  void read_bridge(const Element& element, std::optional<std::uint64_t> bus, std::size_t parent, std::size_t cpu,
                   double rate, int level) {
    Part part;
    part.host = graph_.parts[cpu].host;
    part.order = static_cast<std::int64_t>(graph_.parts.size());
    part.bus = bus;
    part.cpu = cpu;
    part.element = element;
    const std::size_t index = graph_.add(std::move(part));
    graph_.connect(parent, index, LinkKind::pcie, rate);
    for (const Element& child : element.children()) {
      const std::string_view name = child.name();
      if (name == "pci") read_pci(child, index, cpu, level + 1);
      if (name == "nic") read_nic(child, index, cpu, nccl::kLocal);
      if (name == "pcilink") pci_links_.emplace_back(index, nccl::bus_number(document_.required_text(child, "target")));
    }
  }

  void read_gpu(const Element& element, std::optional<std::uint64_t> bus, std::size_t parent, std::size_t cpu,
                double rate) {
    Part part;
    part.kind = NodeKind::gpu;
    part.host = graph_.parts[cpu].host;
    part.order = document_.required_number(element, "dev");
    part.bus = bus;
    part.cpu = cpu;
    part.element = element;
    const bool is_amd = static_cast<bool>(element.attribute("gcn"));  // then `sm` counts compute units
    const std::int64_t capability = is_amd ? -1 : document_.required_number(element, "sm", -1);
    const std::string architecture = is_amd            ? nccl::amd_architecture(document_.required_text(element, "gcn"))
                                     : capability >= 0 ? "sm_" + std::to_string(capability)
                                                       : "";
    part.device = model_of(element, architecture, is_amd ? "gcn" : "sm");
    const std::size_t index = graph_.add(std::move(part));
    graph_.connect(parent, index, LinkKind::pcie, rate);
    for (const Element& link : element.children("nvlink")) gpu_links_.read(link, index, nccl::nvlink_rate(capability));
    for (const Element& link : element.children("xgmi")) gpu_links_.read(link, index, nccl::xgmi_rate(architecture));
    for (const Element& link : element.children("c2c")) {
      const double rate_each = 1e6 * static_cast<double>(document_.required_number(link, "bw"));
      const double c2c = rate_each * static_cast<double>(document_.required_number(link, "count"));
      if (c2c > 0) graph_.connect(index, cpu, LinkKind::c2c, c2c);
    }
  }

  std::shared_ptr<const DeviceModel> model_of(const Element& element, const std::string& architecture,
                                              const std::string& attribute) {
    const auto known = models_.find(architecture);
    if (known != models_.end()) return known->second;
    auto model = nccl::gpu_model(architecture);
    if (!model && !architecture.empty()) {
      document_.problem(
          element, "unknown architecture " + architecture + " (known: " + nccl::known_architectures() + ")", attribute);
    }
    return models_[architecture] = model;
  }

  // One node for each port in use. The ports of one card share its PCIe link.
  void read_nic(const Element& element, std::size_t parent, std::size_t cpu, double rate) {
    std::vector<Element> ports;
    for (const Element& net : element.children("net")) {
      if (net.attribute("dev")) ports.push_back(net);
    }
    if (ports.size() > 1) {
      Part card;
      card.host = graph_.parts[cpu].host;
      card.order = static_cast<std::int64_t>(graph_.parts.size());
      card.cpu = cpu;
      card.element = element;
      const std::size_t index = graph_.add(std::move(card));
      graph_.connect(parent, index, LinkKind::pcie, rate);
      parent = index;
      rate = nccl::kLocal;
    }
    for (const Element& net : ports) {
      Part part;
      part.kind = NodeKind::nic;
      part.host = graph_.parts[cpu].host;
      part.order = document_.number(net, "dev", 0);
      part.cpu = cpu;
      part.element = net;
      part.port = port_of(net);
      graph_.connect(parent, graph_.add(std::move(part)), LinkKind::pcie, rate);
    }
  }

  std::shared_ptr<const LinkModel> port_of(const Element& net) {
    std::int64_t speed = document_.number(net, "speed", 0);  // Mb/s
    const bool stated = speed > 0;
    if (!stated) speed = 10000;
    const double latency_us = document_.real(net, "latency", 0);
    auto& known = ports_[{speed, latency_us}];
    if (known) return known;
    auto model = std::make_shared<LinkModel>();
    model->kind = LinkKind::network;
    model->id = ports_.size() == 1 ? "network" : "network_" + std::to_string(ports_.size());
    model->bandwidth_bytes_per_s = {static_cast<double>(speed) * 1e6 / 8,
                                    stated ? Provenance::vendor : Provenance::assumed,
                                    stated ? "speed in " + document_.file() : "NCCL's default of 10 Gb/s", "", 0};
    model->latency_s = latency_us > 0 ? Figure{latency_us * 1e-6, Provenance::vendor, "in " + document_.file(), "", 0}
                                      : Figure{0.6e-6, Provenance::assumed, "not in the file; HDR InfiniBand", "", 0};
    known = model;
    return model;
  }

  // --- Connecting ---

  // Every pair of NUMA nodes of a host, at the rate NCCL gives the first one's processor.
  void connect_cpus() {
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus_.size(); ++j) {
        if (graph_.parts[cpus_[i].first].host != graph_.parts[cpus_[j].first].host) continue;
        graph_.connect(cpus_[i].first, cpus_[j].first, LinkKind::cpu_interconnect, cpus_[i].second);
      }
    }
  }

  void connect_pci_link(std::size_t from, std::optional<std::uint64_t> target) {
    const auto to = graph_.find(NodeKind::pcie_switch, target, graph_.parts[from].host);
    if (!to || *to == from || !joined_.insert(std::minmax(from, *to)).second) return;
    graph_.connect(from, *to, LinkKind::pcie, nccl::kLocal);
  }

  void check_gpus() {
    std::set<std::pair<int, std::int64_t>> devices;
    std::set<std::pair<int, std::uint64_t>> buses;
    for (const Part& part : graph_.parts) {
      if (part.kind != NodeKind::gpu) continue;
      if (!devices.emplace(part.host, part.order).second) {
        document_.problem(part.element, "two GPUs with this number on one host", "dev");
      }
      if (part.bus && !buses.emplace(part.host, *part.bus).second) {
        document_.problem(part.element.parent(), "two GPUs with this bus id on one host", "busid");
      }
    }
    if (devices.empty() && has_unused_gpu_) {
      document_.problem(document_.root(),
                        "no pci of a GPU holds a gpu element; dump a complete file with NCCL_TOPO_DUMP_FILE");
    }
  }

  Diagnostics diagnostics_;
  nccl::Document document_;
  nccl::Graph graph_;
  nccl::GpuLinks gpu_links_{graph_, document_};
  std::vector<std::pair<std::size_t, double>> cpus_;  // part, rate to other NUMA nodes
  std::map<std::uint64_t, int> hosts_;
  std::vector<std::pair<std::size_t, std::optional<std::uint64_t>>> pci_links_;
  std::set<std::pair<std::size_t, std::size_t>> joined_;
  bool has_unused_gpu_ = false;
  std::map<std::string, std::shared_ptr<const DeviceModel>> models_;  // by architecture
  std::map<std::pair<std::int64_t, double>, std::shared_ptr<const LinkModel>> ports_;
};

}  // namespace

Topology read_nccl_xml(const std::filesystem::path& path) {
  return parse_nccl_xml(read_input_file(path), path.string());
}

Topology parse_nccl_xml(std::string_view text, const std::string& file) {
  return Importer(text, file).import();
}

}  // namespace tandem
