#include "topologies/readers/nccl/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "topologies/generators/cluster.h"
#include "topologies/readers/nccl/nccl_importer.h"

namespace tandem {
namespace nccl {
namespace {

constexpr std::size_t kMostCpus = 16384;
constexpr int kTraysOfRack = 18;  // GB200 NVL72, GB300 NVL72

// Whether this is one machine of Blackwell GPUs that are joined to processors by C2C and to each other by an NVSwitch,
// which is outside of the machine then.
bool is_tray(const Topology& topology) {
  if (topology.worker_count() != 1 || topology.nodes_of(0, NodeKind::nvswitch).empty()) return false;
  const auto gpus = topology.nodes_of(0, NodeKind::gpu);
  const bool is_blackwell = !gpus.empty() && topology.device(gpus.front())->architecture.starts_with("sm_10");
  bool has_c2c = false;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    has_c2c |= topology.link_model(index).kind == LinkKind::c2c;
  }
  return is_blackwell && has_c2c;
}

int count_cores(std::string_view affinity) {
  int bits = 0;
  for (const char c : affinity) {
    unsigned digit = 0;
    if (std::from_chars(&c, &c + 1, digit, 16).ec == std::errc{}) bits += std::popcount(digit);
  }
  return bits;
}

std::string arch_of(std::string_view text) {
  if (text == "aarch64") return "arm64";
  if (text == "ppc64le") return "ppc64";
  return std::string(text);
}

}  // namespace

ImportedTopology Importer::import() {
  for (const Element& root : document_.top().children()) {
    if (root.type() != pugi::node_element) continue;
    if (std::string_view(root.name()) != "system") {
      document_.problem(root, std::string("expected the element 'system', found '") + root.name() + "'");
      diagnostics_.throw_if_any();
    }
    ++systems_;
    read_system(root);
  }
  if (numa_nodes_.empty()) document_.problem(document_.root(), "needs at least one cpu");
  diagnostics_.throw_if_any();
  order_by_bus(NodeKind::gpu);
  if (!has_nets_) order_by_bus(NodeKind::nic);
  gpu_links_.connect(hosts_.size() == 1 || systems_ > 1 || repeated_hosts_ > 0);
  for (const auto& [from, target] : pci_links_) connect_pci_link(from, target);
  check_gpus();
  diagnostics_.throw_if_any();
  gpu_links_.add_connections();
  complete();
  diagnostics_.throw_if_any();
  if (graph_.of(NodeKind::gpu, 0).empty()) document_.note("no GPU on the first host");
  connect_cpus();
  ImportedTopology imported{build_topology(graph_, document_.file()), {}};
  if (machine_ && hosts_.size() == 1) {
    imported.topology.facts().p2p = p2p_as_in(*machine_, imported.topology);
    imported.topology.facts().nvlink_domain = nvlink_domain_as_in(*machine_, imported.topology);
    if (!imported.topology.facts().p2p) {
      document_.note("assumed: GPUs do not reach each other's memory, as in " + machine_name_);
    }
  }
  if (!machine_ && is_tray(imported.topology)) {
    imported.topology.facts().nvlink_domain = kTraysOfRack;
    document_.note(fmt::format("assumed: a tray of a rack, {} of which share one NVLink domain", kTraysOfRack));
  }
  imported.notes = document_.notes();
  return imported;
}

void Importer::read_system(const Element& root) {
  const std::int64_t version = document_.required_number(root, "version", 1);
  if (version != 1 && version != 2) {
    document_.problem(root, "unknown version, expected 1 (NCCL) or 2 (RCCL)", "version");
  }
  document_.note_unknown(root, {"version"}, {"cpu"});
  numa_ids_.clear();
  repeats_ = repeats_gpus(root);
  if (repeats_) document_.note(root, "the same GPUs under equal numaids: taken as several hosts");
  has_gpu_elements_ = has_gpu_elements_ || root.select_node(".//gpu");
  has_nets_ = has_nets_ || root.select_node(".//net[@dev]");
  for (const Element& cpu : root.children("cpu")) {
    if (numa_nodes_.size() == kMostCpus) return document_.problem(cpu, "more than 16,384 processors");
    read_cpu(cpu);
  }
}

void Importer::read_cpu(const Element& element) {
  document_.note_unknown(element, {"host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid", "keep"},
                         {"pci", "nic"});
  Part part;
  part.kind = NodeKind::cpu;
  part.host = read_host(element);
  part.order = static_cast<std::int64_t>(numa_nodes_.size());
  part.element = element;
  document_.number(element, "numaid", 0);
  const int cores = count_cores(element.attribute("affinity").value());
  const Topology host = make_host(std::max(1, cores));
  part.device = host.node(0).device;
  const std::size_t index = graph_.add(std::move(part));
  graph_.parts[index].cpu = index;
  numa_nodes_.push_back({index, numa_rate_of(element), cores > 0});
  for (const Element& child : element.children()) {
    const std::string_view name = child.name();
    if (name == "pci") read_pci(child, index, index, 1);
    if (name == "nic") read_nic(child, index, index, kLocal);
  }
}

// Returns 0 if the file does not say which processor it is.
double Importer::numa_rate_of(const Element& element) {
  Cpu cpu;
  cpu.arch = arch_of(element.attribute("arch").value());
  cpu.vendor = element.attribute("vendor").value();
  cpu.family = document_.number(element, "familyid", 0);
  cpu.model = document_.number(element, "modelid", 0);
  if (cpu.arch.empty() && cpu.vendor.empty()) return 0;
  if (cpu.arch.empty()) cpu.arch = "x86_64";
  if (cpu.arch == "x86_64" && cpu.vendor.empty()) return 0;
  if (cpu.vendor == "GenuineIntel" && !element.attribute("modelid")) return 0;
  if (cpu.arch != "x86_64" && cpu.arch != "arm64" && cpu.arch != "ppc64") {
    document_.note(element, "unknown arch '" + cpu.arch + "'");
    return 0;
  }
  return numa_rate(cpu);
}

// Returns whether a GPU's bus id occurs twice, below processors whose number occurs twice: the files of several hosts
// were put together.
bool Importer::repeats_gpus(const Element& root) const {
  std::set<std::string> buses, numas;
  bool has_bus = false, has_numa = false;
  for (const Element& cpu : root.children("cpu")) {
    if (cpu.attribute("host_hash")) return false;
    has_numa = !numas.insert(cpu.attribute("numaid").value()).second || has_numa;
  }
  for (const auto& found : root.select_nodes(".//pci[gpu or starts-with(@class, '0x03')]")) {
    has_bus = !buses.insert(found.node().attribute("busid").value()).second || has_bus;
  }
  return has_bus && has_numa;
}

// Hosts are numbered in the order of the file; without a host_hash each system is a host.
int Importer::read_host(const Element& cpu) {
  const pugi::xml_attribute hash = cpu.attribute("host_hash");
  if (!hash && repeats_ && !numa_ids_.insert(cpu.attribute("numaid").value()).second) {
    ++repeated_hosts_;
    numa_ids_ = {cpu.attribute("numaid").value()};
  }
  if (!hash) return host_number(repeated_hosts_);
  std::string_view digits = hash.value();
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) {
    document_.problem(cpu, std::string("expected a hex number, found '") + hash.value() + "'", "host_hash");
  }
  return host_number(value);
}

int Importer::host_number(std::uint64_t hash) {
  return hosts_.emplace(std::pair(systems_, hash), static_cast<int>(hosts_.size())).first->second;
}

// Connects every pair of NUMA nodes of a host, at the rate NCCL gives the first one's processor.
void Importer::connect_cpus() {
  for (std::size_t i = 0; i < numa_nodes_.size(); ++i) {
    for (std::size_t j = i + 1; j < numa_nodes_.size(); ++j) {
      const NumaNode& from = numa_nodes_[i];
      const NumaNode& to = numa_nodes_[j];
      if (graph_.parts[from.part].host != graph_.parts[to.part].host) continue;
      graph_.connect(from.part, to.part, LinkKind::cpu_interconnect, from.rate);
    }
  }
}

void Importer::connect_pci_link(std::size_t from, std::optional<std::uint64_t> target) {
  const auto to = graph_.find(NodeKind::pcie_switch, target, graph_.parts[from].host);
  if (!to || *to == from || !joined_.insert(std::minmax(from, *to)).second) return;
  graph_.connect(from, *to, LinkKind::pcie, kLocal);
}

// Numbers GPUs by their `dev` or, if one of them has none, all by bus id, as drivers do.
void Importer::order_by_bus(NodeKind kind) {
  const bool is_numbered = std::none_of(graph_.parts.begin(), graph_.parts.end(),
                                        [&](const Part& part) { return part.kind == kind && part.order < 0; });
  if (is_numbered) return;
  for (Part& part : graph_.parts) {
    if (part.kind == kind) part.order = static_cast<std::int64_t>(part.bus.value_or(0));
  }
}

void Importer::check_gpus() {
  std::set<std::pair<int, std::int64_t>> devices;
  std::set<std::pair<int, std::uint64_t>> buses;
  for (const Part& part : graph_.parts) {
    if (part.kind != NodeKind::gpu) continue;
    // Parts of one GPU (MLOPart) have its number.
    const bool is_numbered = part.element.attribute("dev") && !part.element.attribute("mlopart");
    if (!devices.emplace(part.host, part.order).second && is_numbered) {
      document_.problem(part.element, "two GPUs with this number on one host", "dev");
    }
    const Element pci = std::string_view(part.element.name()) == "gpu" ? part.element.parent() : part.element;
    const bool is_slice = std::distance(pci.children("gpu").begin(), pci.children("gpu").end()) > 1;
    if (part.bus && !is_slice && !buses.emplace(part.host, *part.bus).second) {
      document_.problem(pci, "two GPUs with this bus id on one host", "busid");
    }
  }
}

}  // namespace nccl

Topology parse_nccl_xml(std::string_view text, const std::string& file) {
  return import_nccl_xml(text, file, {}).topology;
}

ImportedTopology import_nccl_xml(std::string_view text, const std::string& file, const ImportOptions& options) {
  return nccl::Importer(text, file, options).import();
}

}  // namespace tandem
