#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "topologies/readers/catalog.h"
#include "topologies/readers/nccl/nccl_importer.h"
#include "topologies/readers/topology_reader.h"

namespace tandem::nccl {
namespace {

constexpr double kSlowestNumaRate = 6e9;  // NCCL's slowest processor

std::string in_gigabytes(double rate) {
  return fmt::format("{:.4g} GB/s", rate / 1e9);
}

// How many GPUs and NICs hang under each processor of a machine, in the order of the processors.
struct Count {
  std::size_t gpus = 0, nics = 0;
};
// Counts the devices of all machines of the catalog, which are read once.
const std::map<std::string, Count>& catalog_counts() {
  static const std::map<std::string, Count> kCounts = [] {
    std::map<std::string, Count> counts;
    for (const std::string& name : catalog_names()) {
      const Topology machine = load_catalog_node(name);
      counts[name] = {machine.nodes_of(0, NodeKind::gpu).size(), machine.nodes_of(0, NodeKind::nic).size()};
    }
    return counts;
  }();
  return kCounts;
}

std::vector<Count> count_by_cpu(const Topology& machine) {
  const auto cpus = machine.nodes_of(0, NodeKind::cpu);
  std::vector<Count> counts(cpus.size());
  const auto cpu_of = [&](NodeIndex node) -> std::optional<std::size_t> {
    std::vector<NodeIndex> reached{node};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (LinkIndex index = 0; index < machine.link_count(); ++index) {
        const Link link = machine.link(index);
        if (link.model->kind != LinkKind::pcie || (link.from != reached[i] && link.to != reached[i])) continue;
        const NodeIndex next = link.from == reached[i] ? link.to : link.from;
        const auto cpu = std::find(cpus.begin(), cpus.end(), next);
        if (cpu != cpus.end()) return static_cast<std::size_t>(cpu - cpus.begin());
        if (machine.kind(next) != NodeKind::pcie_switch) continue;
        if (std::find(reached.begin(), reached.end(), next) == reached.end()) reached.push_back(next);
      }
    }
    return std::nullopt;
  };
  for (const NodeIndex gpu : machine.nodes_of(0, NodeKind::gpu)) {
    if (const auto cpu = cpu_of(gpu)) ++counts[*cpu].gpus;
  }
  for (const NodeIndex nic : machine.nodes_of(0, NodeKind::nic)) {
    if (const auto cpu = cpu_of(nic)) ++counts[*cpu].nics;
  }
  return counts;
}

double rate_of(const LinkModel* model, double otherwise) {
  return model != nullptr ? model->bandwidth_bytes_per_s.value : otherwise;
}

}  // namespace

void Importer::complete() {
  if (is_incomplete()) choose_machine();
  if (!diagnostics_.empty()) return;
  if (!unclassified_.empty()) classify();
  if (!diagnostics_.empty()) return;
  complete_gpus();
  complete_links();
  complete_ports();
  complete_rates();
}

bool Importer::is_incomplete() const {
  const auto lacks = [](const Part& part) { return part.is_partial || (part.kind == NodeKind::gpu && !part.device); };
  return !unclassified_.empty() || gpu_links_.names_only_itself() ||
         std::any_of(graph_.parts.begin(), graph_.parts.end(), lacks) ||
         std::any_of(graph_.connections.begin(), graph_.connections.end(),
                     [](const Connection& connection) { return connection.rate == 0; }) ||
         std::any_of(numa_nodes_.begin(), numa_nodes_.end(), [](const NumaNode& node) { return node.rate == 0; });
}

void Importer::choose_machine() {
  MachineClues clues{{std::filesystem::path(document_.file()).filename().string(), document_.comments()},
                     nullptr,
                     [this](const Topology& machine) { return fits(machine); }};
  for (const Part& part : graph_.parts) {
    const PciGpu* product = part.kind == NodeKind::gpu ? find_pci_gpu(part.vendor, part.product) : nullptr;
    if (clues.product == nullptr && product != nullptr && !product->machine.empty()) clues.product = product;
  }
  auto completion = completion_of(options_, clues);
  if (!completion) return;
  machine_ = std::move(completion->machine);
  machine_name_ = completion->name;
  const bool is_usable = machine_->worker_count() == 1 && !machine_->nodes_of(0, NodeKind::gpu).empty();
  if (!is_usable) {
    return document_.problem(document_.root(), "--complete-with " + machine_name_ + ": not one machine with GPUs");
  }
  if (completion->reason.empty()) return note_other_gpus();
  document_.note("incomplete; the rest is assumed to be as in " + machine_name_ + ", " + completion->reason +
                 " (--complete-with takes another one)");
}

void Importer::note_other_gpus() {
  const DeviceModel& others = *machine_->device(machine_->nodes_of(0, NodeKind::gpu).front());
  for (const Part& part : graph_.parts) {
    if (part.kind != NodeKind::gpu || is_like(part, others)) continue;
    return document_.note(remark_on_other_gpus(*part.device, machine_name_, others));
  }
}

// Whether a GPU of the file can be `model`.
bool Importer::is_like(const Part& gpu, const DeviceModel& model) {
  return !gpu.device || gpu.device->name == model.name ||
         (!gpu.is_partial && gpu.product == 0 && gpu.device->architecture == model.architecture);
}

// Whether the GPUs of the file can be those of a machine.
bool Importer::fits(const Topology& machine) const {
  const auto gpus = machine.nodes_of(0, NodeKind::gpu);
  if (gpus.empty()) return false;
  const DeviceModel& model = *machine.device(gpus.front());
  const PciGpu* stated = stated_gpu(options_);
  return std::all_of(graph_.parts.begin(), graph_.parts.end(), [&](const Part& part) {
    if (part.kind != NodeKind::gpu) return true;
    return part.device || stated == nullptr ? is_like(part, model) : model.name == stated->product;
  });
}

// Names the machines of the catalog with as many GPUs and NICs, or as many GPUs.
std::string Importer::advice() const {
  std::size_t gpus = 0, nics = 0;
  for (const Part& part : graph_.parts) {
    gpus += part.kind == NodeKind::gpu && part.host == 0 ? 1 : 0;
    nics += part.kind == NodeKind::nic && part.host == 0 ? 1 : 0;
  }
  std::vector<std::string> likely;
  for (const auto& [name, has] : catalog_counts()) {
    const bool is_like = unclassified_.empty() ? has.gpus == gpus && has.nics == nics
                                               : has.gpus + has.nics == gpus + nics + unclassified_.size();
    if (is_like && has.gpus > 0) likely.push_back(name);
  }
  const std::string alike =
      likely.empty() ? ""
                     : fmt::format("; of the catalog these have as many GPUs and NICs: {}", fmt::join(likely, ", "));
  return "name the machine with --complete-with NAME (in YAML: complete_with: NAME), of the catalog or a file" + alike;
}

// Elements without a class are the GPUs and NICs that the machine has and the file lacks. They are assigned in the
// order of the file, the GPUs of each processor first.
void Importer::classify() {
  if (!machine_) return refuse_unclassified();
  const std::vector<Count> counts = count_by_cpu(*machine_);
  if (counts.size() != numa_nodes_.size()) return refuse_unclassified();
  std::vector<NodeKind> kinds(unclassified_.size(), NodeKind::gpu);
  for (std::size_t cpu = 0; cpu < counts.size(); ++cpu) {
    Count left = counts[cpu];
    for (const Part& part : graph_.parts) {
      if (part.cpu != numa_nodes_[cpu].part) continue;
      if (part.kind == NodeKind::gpu && left.gpus > 0) --left.gpus;
      if (part.kind == NodeKind::nic && left.nics > 0) --left.nics;
    }
    std::size_t place = 0;
    for (std::size_t i = 0; i < unclassified_.size(); ++i) {
      if (unclassified_[i].cpu == numa_nodes_[cpu].part && place++ >= left.gpus) kinds[i] = NodeKind::nic;
    }
    if (place != left.gpus + left.nics) return refuse_unclassified();
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Unclassified& one = unclassified_[i];
    add_partial(kinds[i], one.element, one.bus, one.parent, one.cpu, one.rate);
  }
  document_.note(
      fmt::format("{} pci elements without a class, taken as the GPUs and NICs of {}", kinds.size(), machine_name_));
  order_by_bus(NodeKind::gpu);
  if (!has_nets_) order_by_bus(NodeKind::nic);
}

void Importer::refuse_unclassified() {
  const std::string beside =
      machine_ ? fmt::format("; {} has another number of GPUs and NICs at its processors", machine_name_) : "";
  document_.problem(unclassified_.front().element,
                    fmt::format("{} pci elements without class and device, so that nothing tells which are GPUs{}; {}",
                                unclassified_.size(), beside, advice()));
}

void Importer::complete_gpus() {
  const Part* unknown = nullptr;
  std::size_t count = 0;
  for (Part& part : graph_.parts) {
    if (part.kind != NodeKind::gpu) continue;
    if (const PciGpu* stated = stated_gpu(options_); !part.device && stated != nullptr) {
      part.device = product_model(*stated);
      document_.note("assumed: GPUs are " + std::string(stated->product) + " (--gpu)");
    }
    if (!part.device && machine_) {
      auto& model = models_["as in " + machine_name_];
      if (!model) {
        const auto device = machine_->device(machine_->nodes_of(0, NodeKind::gpu).front());
        model = std::make_shared<DeviceModel>(assumed_as_in(machine_name_, *device));
        document_.note("assumed: GPUs are " + device->name + ", as in " + machine_name_);
      }
      part.device = model;
    }
    unknown = part.device || unknown != nullptr ? unknown : &part;
    count += part.device ? 0 : 1;
  }
  if (unknown == nullptr) return;
  document_.problem(unknown->element,
                    fmt::format("nothing tells which product {}; {}",
                                count == 1 ? "this GPU is" : fmt::format("these {} GPUs are", count), advice()));
}

// Links between GPUs are missing if the file only says where GPUs are, or if all links lead from a GPU to itself.
void Importer::complete_links() {
  const bool is_partial = std::any_of(graph_.parts.begin(), graph_.parts.end(),
                                      [](const Part& part) { return part.kind == NodeKind::gpu && part.is_partial; });
  if (!gpu_links_.names_only_itself() && (!is_partial || !gpu_links_.empty())) return;
  if (!machine_) {
    return document_.note("assumed: no NVLink or xGMI between GPUs, of which the file tells nothing (--complete-with)");
  }
  for (const auto& [key, host] : hosts_) complete_links_of(host, graph_.of(NodeKind::gpu, host));
}

void Importer::complete_links_of(int host, const std::vector<std::size_t>& gpus) {
  const auto templates = machine_->nodes_of(0, NodeKind::gpu);
  if (gpus.size() > templates.size() && first_link(*machine_, LinkKind::nvlink) != nullptr) {
    return document_.problem(document_.root(),
                             fmt::format("{} GPUs, but {} has {}; {}; or --complete-with none for GPUs without NVLink",
                                         gpus.size(), machine_name_, templates.size(), advice()));
  }
  std::map<NodeIndex, std::size_t> places;
  for (std::size_t i = 0; i < gpus.size(); ++i) places[templates[i]] = gpus[i];
  const auto place_of = [&](NodeIndex node) -> std::optional<std::size_t> {
    if (const auto known = places.find(node); known != places.end()) return known->second;
    if (machine_->kind(node) != NodeKind::nvswitch) return std::nullopt;
    Part part;
    part.kind = NodeKind::nvswitch;
    part.host = host;
    return places[node] = graph_.add(std::move(part));
  };
  std::map<NodeIndex, double> rates;
  for (LinkIndex index = 0; index < machine_->link_count(); ++index) {
    const Link link = machine_->link(index);
    if (link.model->kind != LinkKind::nvlink) continue;
    const auto from = place_of(link.from);
    const auto to = place_of(link.to);
    if (!from || !to) continue;
    graph_.connect(*from, *to, LinkKind::nvlink, 1);
    graph_.connections.back().model = assumed(link.model);
    for (const NodeIndex end : {link.from, link.to}) rates[end] += link.model->bandwidth_bytes_per_s.value;
  }
  if (!rates.empty()) {
    document_.note(fmt::format("assumed: links between {} GPUs, {} for each, as in {}", gpus.size(),
                               in_gigabytes(rates[templates.front()]), machine_name_));
  }
}

std::shared_ptr<const LinkModel> Importer::assumed(const std::shared_ptr<const LinkModel>& model) {
  auto& known = assumed_[model.get()];
  if (!known) known = std::make_shared<LinkModel>(assumed_as_in(machine_name_, *model));
  return known;
}

void Importer::complete_ports() {
  const auto nics = machine_ ? machine_->nodes_of(0, NodeKind::nic) : std::vector<NodeIndex>{};
  for (Part& part : graph_.parts) {
    if (part.kind != NodeKind::nic || part.port) continue;
    const PciNic* product = find_pci_nic(part.vendor, part.product);
    const auto& port = nics.empty() ? nullptr : machine_->node(nics.front()).port;
    if (port && (product == nullptr || product->bytes_per_s == 0 ||
                 product->bytes_per_s == port->bandwidth_bytes_per_s.value)) {
      part.port = assumed(port);
      const std::string unknown = product != nullptr || part.vendor == 0
                                      ? ""
                                      : fmt::format(" for the unknown NIC {:04x}:{:04x}", part.vendor, part.product);
      document_.note(part.element,
                     fmt::format("assumed: a port of {}{}, as in {}", in_gigabytes(port->bandwidth_bytes_per_s.value),
                                 unknown, machine_name_));
    } else if (product != nullptr && product->bytes_per_s > 0) {
      part.port = std::make_shared<LinkModel>(fastest_port_of(*product));
      document_.note(part.element, fmt::format("assumed: a port of {}, the fastest of {}",
                                               in_gigabytes(product->bytes_per_s), product->product));
    } else {
      document_.note(part.element, "nothing tells the speed of this NIC; it joins no cluster (--complete-with)");
    }
  }
}

void Importer::complete_rates() {
  const auto pcie = machine_ ? first_link(*machine_, LinkKind::pcie) : nullptr;
  const double pcie_rate = rate_of(pcie.get(), kUnknownPcie);
  const std::string as_in = "as in " + machine_name_;
  for (Connection& connection : graph_.connections) {
    if (connection.rate != 0) continue;
    connection.rate = pcie_rate;
    connection.source = pcie != nullptr ? as_in : "NCCL's rate where speed and width are unknown";
    document_.note(graph_.parts[connection.to].element,
                   fmt::format("assumed: PCIe of {}, {}", in_gigabytes(pcie_rate), connection.source));
  }
  const auto numa = machine_ ? first_link(*machine_, LinkKind::cpu_interconnect) : nullptr;
  const double numa_rate = rate_of(numa.get(), kSlowestNumaRate);
  const auto cpus = machine_ ? machine_->nodes_of(0, NodeKind::cpu) : std::vector<NodeIndex>{};
  for (NumaNode& node : numa_nodes_) {
    if (node.rate == 0 && numa_nodes_.size() > 1) {
      document_.note(
          graph_.parts[node.part].element,
          fmt::format("assumed: {} between processors, {}", in_gigabytes(numa_rate),
                      numa != nullptr ? as_in : "the slowest NCCL knows; the file does not tell the processor"));
    }
    if (node.rate == 0) node.rate = numa_rate;
    if (node.has_cores) continue;
    if (!cpus.empty()) graph_.parts[node.part].device = machine_->device(cpus.front());
    document_.note(graph_.parts[node.part].element, cpus.empty() ? "no affinity: the processor is taken as one core"
                                                                 : "assumed: the processor of " + machine_name_);
  }
}

}  // namespace tandem::nccl
