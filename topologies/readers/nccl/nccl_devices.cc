#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "topologies/readers/catalog.h"
#include "topologies/readers/nccl/nccl_importer.h"

namespace tandem::nccl {
namespace {

constexpr int kMostLevels = 64;

// Returns the number after "sm_"; the lowest number for other architectures.
std::int64_t capability_of(const std::string& architecture) {
  std::int64_t number = 0;
  if (architecture.starts_with("sm_")) {
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  }
  return number;
}

// Old files of RCCL have these numbers as `sm`: architectures of AMD, not compute capabilities.
bool is_gcn_number(std::int64_t number) {
  return number == 803 || number == 900 || number == 906 || number == 908 || number == 910 || number == 940 ||
         number == 941 || number == 942 || number == 950;
}

}  // namespace

Importer::Device Importer::kind_of(const Element& pci) {
  if (pci.child("gpu")) return Device::gpu;
  const bool has_nic = pci.child("nic") || pci.child("net");
  const bool is_parent = pci.child("pci") || pci.child("pcilink");
  if (has_nic && !is_parent) return Device::nic;
  if (is_parent) return Device::bridge;
  const auto vendor = document_.id(pci, "vendor");
  const auto device = document_.id(pci, "device");
  if (vendor && device && find_pci_gpu(*vendor, *device) != nullptr) return Device::gpu;
  const std::string_view text = pci.attribute("class").value();
  if (text.empty()) {
    return vendor && device && find_pci_nic(*vendor, *device) != nullptr ? Device::nic : Device::unknown;
  }
  const PciClass kind = pci_class(text);
  if (kind == PciClass::gpu) {
    const bool is_stated = vendor.value_or(0) != 0 && *vendor != 0xffff;
    return is_stated && !makes_gpus(*vendor) ? Device::skipped : Device::gpu;
  }
  return kind == PciClass::nic ? Device::nic : Device::skipped;
}

void Importer::read_pci(const Element& element, std::size_t parent, std::size_t cpu, int level) {
  if (level > kMostLevels) return document_.problem(element, "nested more than 64 levels deep");
  document_.note_unknown(element,
                         {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed",
                          "link_width", "numaid", "keep"},
                         {"pci", "gpu", "nic", "net", "pcilink"});
  const auto bus = read_bus(element);
  const double rate = read_rate(element);
  switch (kind_of(element)) {
    case Device::gpu:
      return read_gpus(element, bus, parent, cpu, rate);
    case Device::nic:
      if (element.child("net")) return read_nic(element, parent, cpu, rate);
      if (!element.child("nic") && !has_nets_) return add_partial(NodeKind::nic, element, bus, parent, cpu, rate);
      if (!element.child("nic"))
        document_.note(element, "a NIC without a nic element, which NCCL does not use, left out");
      for (const Element& nic : element.children("nic")) read_nic(nic, parent, cpu, rate);
      return;
    case Device::bridge:
      return read_bridge(element, bus, parent, cpu, rate, level);
    case Device::unknown:
      return unclassified_.push_back({element, bus, parent, cpu, rate});
    case Device::skipped:
      return;  // NVSwitches, disks, displays, bridges to nothing
  }
}

std::optional<std::uint64_t> Importer::read_bus(const Element& element) {
  const std::string text = document_.required_text(element, "busid");
  if (text.empty()) return std::nullopt;
  const auto bus = bus_number(text);
  if (!bus) document_.problem(element, "expected a bus id such as 0000:c1:00.0, found '" + text + "'", "busid");
  return bus;
}

// Returns 0 if the file does not state the rate, as those of virtual machines.
double Importer::read_rate(const Element& element) {
  const std::string_view speed = element.attribute("link_speed").value();
  std::int64_t width = 0;
  constexpr std::int64_t kMostLanes = 256;
  if (*element.attribute("link_width").value() != '\0') {
    width = document_.count(element, "link_width", 0, 0, kMostLanes);
  }
  if (width == 0 && (speed.empty() || speed.front() < '0' || speed.front() > '9')) return 0;
  return pci_rate(width, speed);
}

void Importer::read_bridge(const Element& element, std::optional<std::uint64_t> bus, std::size_t parent,
                           std::size_t cpu, double rate, int level) {
  const std::size_t index = add_card(element, parent, cpu, rate);
  const std::size_t uplink = graph_.connections.size() - 1;
  graph_.parts[index].bus = bus;
  for (const Element& child : element.children()) {
    const std::string_view name = child.name();
    if (name == "pci") read_pci(child, index, cpu, level + 1);
    if (name == "nic") read_nic(child, index, cpu, kLocal);
    if (name == "pcilink") pci_links_.emplace_back(index, bus_number(document_.required_text(child, "target")));
  }
  widen_virtual_bridge(element, uplink);
}

// The bridges of virtual machines state 2.5 GT/s and one lane, but carry the full rate of the devices below them.
void Importer::widen_virtual_bridge(const Element& element, std::size_t uplink) {
  constexpr double kSlowestSwitch = 1.0 / 8;  // beside its fastest device
  double fastest = 0;
  for (std::size_t i = uplink + 1; i < graph_.connections.size(); ++i) {
    const Connection& below = graph_.connections[i];
    if (below.from == graph_.connections[uplink].to && below.rate < kLocal) fastest = std::max(fastest, below.rate);
  }
  Connection& link = graph_.connections[uplink];
  if (link.rate == 0 || link.rate >= fastest * kSlowestSwitch) return;
  document_.note(element, fmt::format("assumed: a virtual machine's bridge, which carries {:.4g} GB/s as the devices "
                                      "below it do, not the {:.4g} GB/s of its link_speed and link_width",
                                      fastest * 1e-9, link.rate * 1e-9));
  link.rate = fastest;
  link.source = "as fast as what is below a virtual machine's bridge";
}

// Several gpu elements in one pci are slices of one card (MIG), which share its PCIe link.
void Importer::read_gpus(const Element& pci, std::optional<std::uint64_t> bus, std::size_t parent, std::size_t cpu,
                         double rate) {
  const auto gpus = pci.children("gpu");
  const auto count = std::distance(gpus.begin(), gpus.end());
  if (count == 0) {
    if (!has_gpu_elements_) return add_partial(NodeKind::gpu, pci, bus, parent, cpu, rate);
    unused_gpus_.push_back(pci);
    return document_.note(pci, "a GPU without a gpu element, which the job did not use, left out");
  }
  if (count > 1) {
    document_.note(pci,
                   "several gpu elements in one pci, taken as slices of one card that share its PCIe link; each "
                   "has the figures of the whole card");
    parent = add_card(pci, parent, cpu, rate);
    rate = kLocal;
  }
  for (const Element& gpu : gpus) read_gpu(gpu, pci, bus, parent, cpu, rate);
}

void Importer::read_gpu(const Element& element, const Element& pci, std::optional<std::uint64_t> bus,
                        std::size_t parent, std::size_t cpu, double rate) {
  document_.note_unknown(element, {"dev", "sm", "rank", "gdr", "gcn", "arch", "keep", "mnnvl", "busid", "mlopart"},
                         {"nvlink", "xgmi", "c2c"});
  Part part;
  part.kind = NodeKind::gpu;
  part.host = graph_.parts[cpu].host;
  part.order = document_.number(element, "dev", -1);
  if (element.attribute("dev") && part.order < 0) document_.problem(element, "must not be negative", "dev");
  part.bus = bus;
  part.cpu = cpu;
  part.element = element;
  part.vendor = document_.id(pci, "vendor").value_or(0);
  part.product = document_.id(pci, "device").value_or(0);
  const PciGpu* product = find_pci_gpu(part.vendor, part.product);
  std::string architecture = architecture_of(element);
  part.is_partial = architecture.empty();
  if (architecture.empty() && product != nullptr) architecture = product->architecture;
  part.device = product != nullptr && product->architecture == architecture ? product_model(*product)
                                                                            : architecture_model(architecture);
  if (!part.device && !architecture.empty() && options_.complete_with.empty()) {
    document_.problem(element,
                      "unknown architecture " + architecture + " (known: " + known_architectures() +
                          "); --complete-with NAME takes the GPUs of a machine of the catalog or of a file",
                      element.attribute("gcn") ? "gcn" : "sm");
  }
  const std::size_t index = graph_.add(std::move(part));
  graph_.connect(parent, index, LinkKind::pcie, rate);
  read_links(element, index, architecture);
}

void Importer::read_links(const Element& gpu, std::size_t index, const std::string& architecture) {
  const double nvlink = nvlink_rate(capability_of(architecture));
  for (const Element& link : gpu.children("nvlink")) gpu_links_.read(link, index, nvlink);
  for (const Element& link : gpu.children("xgmi")) gpu_links_.read(link, index, xgmi_rate(architecture));
  for (const Element& link : gpu.children("c2c")) {
    const double rate_each = 1e6 * static_cast<double>(document_.required_number(link, "bw"));
    document_.check_quantity(link, "bw", rate_each, Dimension::bytes_per_second);
    const double c2c = rate_each * static_cast<double>(document_.count(link, "count", 1, 0, kMostLinks));
    if (c2c > 0) graph_.connect(index, graph_.parts[index].cpu, LinkKind::c2c, c2c);
  }
}

// "sm_80" or "gfx90a"; empty when the file does not tell.
std::string Importer::architecture_of(const Element& gpu) {
  if (gpu.attribute("gcn")) {  // then `sm` counts compute units
    const std::string gcn = document_.required_text(gpu, "gcn");
    return amd_architecture(gcn.substr(0, gcn.find(':')));  // without the features after it
  }
  if (!gpu.attribute("sm")) return "";
  const std::int64_t number = document_.number(gpu, "sm", -1);
  if (number < 0) return "";
  return is_gcn_number(number) ? amd_architecture(std::to_string(number)) : "sm_" + std::to_string(number);
}

void Importer::add_partial(NodeKind kind, const Element& pci, std::optional<std::uint64_t> bus, std::size_t parent,
                           std::size_t cpu, double rate) {
  Part part;
  part.kind = kind;
  part.host = graph_.parts[cpu].host;
  part.order = -1;
  part.bus = bus;
  part.cpu = cpu;
  part.element = pci;
  part.is_partial = true;
  part.vendor = document_.id(pci, "vendor").value_or(0);
  part.product = document_.id(pci, "device").value_or(0);
  if (const PciGpu* product = find_pci_gpu(part.vendor, part.product); kind == NodeKind::gpu && product != nullptr) {
    part.device = product_model(*product);
  }
  graph_.connect(parent, graph_.add(std::move(part)), LinkKind::pcie, rate);
}

// One node for each port in use. The ports of one card share its PCIe link.
void Importer::read_nic(const Element& element, std::size_t parent, std::size_t cpu, double rate) {
  std::vector<Element> ports;
  document_.note_unknown(element, {"keep", "busid"}, {"net"});
  for (const Element& net : element.children("net")) {
    document_.note_unknown(net,
                           {"name", "dev", "speed", "port", "guid", "maxconn", "gdr", "coll", "latency", "keep", "rail",
                            "plane", "busid", "net", "gin"},
                           {});
    if (net.attribute("dev")) ports.push_back(net);
    if (document_.number(net, "gdr", 1) == 0) {
      document_.note(net, "gdr=0 has no effect here: data goes straight between GPUs and this NIC");
    }
    if (document_.number(net, "coll", 0) != 0) {
      document_.note(net, "coll has no effect here: NCCL_COLLNET_ENABLE lets switches reduce");
    }
    if (!net.attribute("dev")) document_.note(net, "a net without dev, which NCCL does not use, left out");
  }
  if (ports.size() > 1) {
    parent = add_card(element, parent, cpu, rate);
    rate = kLocal;
  }
  for (const Element& net : ports) {
    Part part;
    part.kind = NodeKind::nic;
    part.host = graph_.parts[cpu].host;
    part.order = std::max<std::int64_t>(0, document_.number(net, "dev", 0));
    part.cpu = cpu;
    part.element = net;
    part.port = port_of(net);
    graph_.connect(parent, graph_.add(std::move(part)), LinkKind::pcie, rate);
  }
}

// Adds the part above several devices: a PCIe switch, or a card that has several of them.
std::size_t Importer::add_card(const Element& element, std::size_t parent, std::size_t cpu, double rate) {
  Part card;
  card.host = graph_.parts[cpu].host;
  card.order = static_cast<std::int64_t>(graph_.parts.size());
  card.cpu = cpu;
  card.element = element;
  const std::size_t index = graph_.add(std::move(card));
  graph_.connect(parent, index, LinkKind::pcie, rate);
  return index;
}

std::shared_ptr<const LinkModel> Importer::port_of(const Element& net) {
  std::int64_t speed = document_.number(net, "speed", 0);  // Mb/s
  const bool stated = speed > 0;
  if (!stated) speed = 10000;
  if (stated) document_.check_quantity(net, "speed", static_cast<double>(speed) * 1e6 / 8, Dimension::bytes_per_second);
  const double latency_us = document_.real(net, "latency", 0);
  document_.check_quantity(net, "latency", latency_us * 1e-6, Dimension::seconds);
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

std::shared_ptr<const DeviceModel> Importer::product_model(const PciGpu& product) {
  auto& model = models_[std::string(product.product)];
  if (!model) model = gpu_of_product(product);
  return model;
}

std::shared_ptr<const DeviceModel> Importer::architecture_model(const std::string& architecture) {
  const auto known = models_.find(architecture);
  return known != models_.end() ? known->second : models_[architecture] = gpu_model(architecture);
}

}  // namespace tandem::nccl
