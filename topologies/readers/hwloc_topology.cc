#include "topologies/readers/hwloc_topology.h"

#include "topologies/base/error.h"

#ifdef TANDEM_HAS_HWLOC
#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "topologies/readers/described_graph.h"
#include "topologies/readers/hwloc_document.h"
#include "topologies/readers/nvml_links.h"
#endif

namespace tandem {

#ifdef TANDEM_HAS_HWLOC
namespace {

// The share of a PCIe link's rate that kernels reach: NCCL's width x speed / 80, divided by the line rate that hwloc
// states, which is 128/130 encoded.
constexpr double kReachedOfPcie = 0.09375 / (0.125 * 128 / 130);

class HwlocTopology {
 public:
  HwlocTopology() {
    hwloc_topology_init(&topology_);
    hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  }
  ~HwlocTopology() { hwloc_topology_destroy(topology_); }
  HwlocTopology(const HwlocTopology&) = delete;
  HwlocTopology& operator=(const HwlocTopology&) = delete;
  hwloc_topology_t get() const { return topology_; }

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::optional<double> pcie_rate_of(float gigabytes_per_s) {
  if (!(gigabytes_per_s > 0)) return std::nullopt;
  return std::round(static_cast<double>(gigabytes_per_s) * kReachedOfPcie * 100) * 1e7;
}

bool has_os_device(hwloc_obj_t pci, hwloc_obj_osdev_type_t type) {
  for (hwloc_obj_t child = pci->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == type) return true;
  }
  return false;
}

// "0000:c1:00.0", as NVML compares them.
std::string bus_of(hwloc_obj_t pci) {
  const auto& attr = pci->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", attr.domain, attr.bus, attr.dev, attr.func);
}

// From hwloc's objects to a graph. Bridges above one device only are left out.
class HwlocGraph {
 public:
  explicit HwlocGraph(hwloc_topology_t topology) : topology_(topology) {}

  DescribedGraph describe() {
    add_processors();
    std::vector<hwloc_obj_t> gpus, nics;
    find_devices(gpus, nics);
    for (hwloc_obj_t device : gpus) count_below(device);
    for (hwloc_obj_t device : nics) count_below(device);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      gpu_nodes_[gpus[i]] = add_device(gpus[i], fmt::format("w0.gpu{}", i), "gpu");
      buses_[bus_of(gpus[i])] = gpu_nodes_[gpus[i]];
    }
    for (std::size_t i = 0; i < nics.size(); ++i) {
      nic_nodes_[nics[i]] = add_device(nics[i], fmt::format("w0.nic{}", i), "nic");
    }
    has_nvlinks_ = add_nvlinks();
    return graph_;
  }
  bool has_nvlinks() const { return has_nvlinks_; }
  const std::map<std::string, std::size_t>& buses() const { return buses_; }
  const std::map<hwloc_obj_t, std::size_t>& nics() const { return nic_nodes_; }

 private:
  void link(std::size_t from, std::size_t to, const char* kind, std::optional<double> rate) {
    DescribedLink made;
    made.from = from;
    made.to = to;
    made.kind = kind;
    made.bytes_per_s = rate;
    graph_.links.push_back(std::move(made));
  }

  std::size_t add(const std::string& name, const std::string& kind) {
    DescribedNode node;
    node.name = name;
    node.kind = kind;
    node.worker = 0;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  void add_processors() {
    const int count = hwloc_get_nbobjs_by_type(topology_, HWLOC_OBJ_NUMANODE);
    for (int i = 0; i < std::max(1, count); ++i) {
      const hwloc_obj_t numa =
          count > 0 ? hwloc_get_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i)) : nullptr;
      const hwloc_obj_t place = numa != nullptr ? numa : hwloc_get_root_obj(topology_);
      int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology_, place->cpuset, HWLOC_OBJ_CORE);
      if (cores <= 0) cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology_, place->cpuset, HWLOC_OBJ_PU);
      if (cores <= 0 && count > 1) continue;  // a GPU's memory, which is a node of its own beside a Grace
      const std::size_t node = add(fmt::format("w0.cpu{}", cpus_.size()), "cpu");
      graph_.nodes[node].cores = std::max(1, cores);
      if (numa != nullptr) graph_.nodes[node].memory_bytes = static_cast<double>(numa->attr->numanode.local_memory);
      hwloc_obj_t package = place;
      while (package != nullptr && package->type != HWLOC_OBJ_PACKAGE) package = package->parent;
      const char* model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
      if (model != nullptr) graph_.nodes[node].device = model;
      for (const auto& [other, known] : cpus_) link(known, node, "cpu_interconnect", std::nullopt);
      cpus_.emplace_back(place, node);
    }
  }

  void find_devices(std::vector<hwloc_obj_t>& gpus, std::vector<hwloc_obj_t>& nics) {
    std::vector<hwloc_obj_t> ethernet;
    for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology_, pci)) != nullptr;) {
      const auto& attr = pci->attr->pcidev;
      const int kind = attr.class_id >> 8;
      if ((kind == 0x03 || kind == 0x12) && (attr.vendor_id == 0x10de || attr.vendor_id == 0x1002)) {
        gpus.push_back(pci);
      } else if (kind == 0x02 && has_os_device(pci, HWLOC_OBJ_OSDEV_OPENFABRICS)) {
        nics.push_back(pci);
      } else if (kind == 0x02 && has_os_device(pci, HWLOC_OBJ_OSDEV_NETWORK)) {
        ethernet.push_back(pci);
      }
    }
    if (nics.empty()) nics = ethernet;  // otherwise those that manage the machine
  }

  // Returns the bridges above a device, the nearest first.
  static std::vector<hwloc_obj_t> bridges_above(hwloc_obj_t device) {
    std::vector<hwloc_obj_t> bridges;
    for (hwloc_obj_t at = device->parent; at != nullptr && hwloc_obj_type_is_io(at->type) != 0; at = at->parent) {
      if (at->type == HWLOC_OBJ_BRIDGE && at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) bridges.push_back(at);
    }
    return bridges;
  }

  void count_below(hwloc_obj_t device) {
    for (hwloc_obj_t bridge : bridges_above(device)) ++below_[bridge];
  }

  std::size_t processor_of(hwloc_obj_t device) const {
    const hwloc_obj_t ancestor = hwloc_get_non_io_ancestor_obj(topology_, device);
    for (const auto& [place, node] : cpus_) {
      if (ancestor != nullptr && ancestor->nodeset != nullptr && place->type == HWLOC_OBJ_NUMANODE &&
          hwloc_bitmap_isset(ancestor->nodeset, place->os_index) != 0) {
        return node;
      }
    }
    return cpus_.front().second;
  }

  std::size_t add_device(hwloc_obj_t device, const std::string& name, const std::string& kind) {
    const std::size_t node = add(name, kind);
    graph_.nodes[node].vendor = device->attr->pcidev.vendor_id;
    graph_.nodes[node].product = device->attr->pcidev.device_id;
    for (hwloc_obj_t child = device->io_first_child; child != nullptr; child = child->next_sibling) {
      const char* model = hwloc_obj_get_info_by_name(child, "GPUModel");
      if (model != nullptr) graph_.nodes[node].device = model;
    }
    std::optional<double> rate = pcie_rate_of(device->attr->pcidev.linkspeed);
    std::size_t below = node;
    for (hwloc_obj_t bridge : bridges_above(device)) {
      const auto own = pcie_rate_of(bridge->attr->bridge.upstream.pci.linkspeed);
      if (below_[bridge] < 2) {
        if (own && rate) rate = std::min(*own, *rate);
        continue;
      }
      const auto [known, is_new] = bridges_.emplace(bridge, 0);
      if (is_new) known->second = add(fmt::format("w0.pcie{}", bridges_.size() - 1), "pcie_switch");
      link(known->second, below, "pcie", rate);
      if (!is_new) return node;
      below = known->second;
      rate = own;
    }
    link(processor_of(device), below, "pcie", rate);
    return node;
  }

  // Returns the node of a GPU, or nothing for a port of an NVSwitch.
  std::optional<std::size_t> gpu_of(hwloc_obj_t object) const {
    while (object != nullptr && object->type != HWLOC_OBJ_PCI_DEVICE) object = object->parent;
    const auto found = gpu_nodes_.find(object);
    return found == gpu_nodes_.end() ? std::nullopt : std::optional(found->second);
  }

  // Returns the processor of a package, to which the GPUs of POWER machines have NVLinks.
  std::optional<std::size_t> processor_in(hwloc_obj_t package) const {
    if (package->type != HWLOC_OBJ_PACKAGE) return std::nullopt;
    for (const auto& [place, node] : cpus_) {
      if (hwloc_bitmap_intersects(place->cpuset, package->cpuset) != 0) return node;
    }
    return std::nullopt;
  }

  // hwloc's matrix "NVLinkBandwidth" has MB/s in one direction, for all links of a pair together.
  bool add_nvlinks() {
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    if (hwloc_distances_get_by_name(topology_, "NVLinkBandwidth", &count, &matrix, 0) != 0 || count == 0) return false;
    std::map<std::size_t, double> to_switch;
    for (unsigned i = 0; i < matrix->nbobjs; ++i) {
      for (unsigned j = 0; j < matrix->nbobjs; ++j) {
        const double rate = static_cast<double>(matrix->values[i * matrix->nbobjs + j]) * 1e6;
        const auto from = gpu_of(matrix->objs[i]), to = gpu_of(matrix->objs[j]);
        if (i == j || rate == 0 || !from) continue;
        const auto processor = to ? std::nullopt : processor_in(matrix->objs[j]);
        if (processor) link(*from, *processor, "nvlink", rate);
        if (!to && !processor) to_switch[*from] += rate;
        if (to && *from < *to) link(*from, *to, "nvlink", rate);
      }
    }
    if (!to_switch.empty()) {
      const std::size_t nvswitch = add("w0.nvswitch0", "nvswitch");
      for (const auto& [gpu, rate] : to_switch) link(gpu, nvswitch, "nvlink", rate);
    }
    hwloc_distances_release(topology_, matrix);
    return true;
  }

  hwloc_topology_t topology_;
  DescribedGraph graph_{};
  std::vector<std::pair<hwloc_obj_t, std::size_t>> cpus_{};
  std::map<hwloc_obj_t, int> below_{};
  std::map<hwloc_obj_t, std::size_t> bridges_{}, gpu_nodes_{}, nic_nodes_{};
  std::map<std::string, std::size_t> buses_{};
  bool has_nvlinks_ = false;
};

void note_missing_nvlinks(const HwlocGraph& graph, const std::string& file, ImportedTopology& imported) {
  if (graph.has_nvlinks() || graph.buses().size() < 2) return;
  imported.notes.push_back(file +
                           ": no NVLinks: hwloc was built without NVML, or there are none; take the text of "
                           "nvidia-smi topo -m, or NCCL's file, where there are some");
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Reads the rate of a NIC's port from sysfs: "400 Gb/sec (4X NDR)" for an InfiniBand device, Mb/s for an Ethernet one.
void read_port(hwloc_obj_t nic, DescribedNode& node) {
  for (hwloc_obj_t child = nic->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
    const std::filesystem::path infiniband = std::filesystem::path("/sys/class/infiniband") / child->name / "ports/1";
    const double gigabits = std::atof(first_line(infiniband / "rate").c_str());
    const double megabits =
        std::atof(first_line(std::filesystem::path("/sys/class/net") / child->name / "speed").c_str());
    if (gigabits > 0) {
      node.port_bytes_per_s = gigabits * 1e9 / 8;
      node.transport = first_line(infiniband / "link_layer") == "Ethernet" ? "roce" : "infiniband";
    } else if (megabits > 0 && !node.port_bytes_per_s) {
      node.port_bytes_per_s = megabits * 1e6 / 8;
    }
  }
}

// Returns MemTotal in bytes; 0 if it is not known.
double total_memory() {
  std::ifstream stream("/proc/meminfo");
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("MemTotal:")) return std::atof(line.c_str() + 9) * 1024;
  }
  return 0;
}

// A virtual machine may report less memory for its only NUMA node than it has.
void read_memory(hwloc_topology_t topology, DescribedGraph& graph) {
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1) return;
  DescribedNode& processor = graph.nodes.front();
  processor.memory_bytes = std::max(processor.memory_bytes, total_memory());
}

void add_nvml_links(const HwlocGraph& hwloc, DescribedGraph& graph) {
  std::optional<std::size_t> nvswitch;
  for (const NvmlLinks& one : nvml_links()) {
    const auto from = hwloc.buses().find(one.bus);
    const auto to = hwloc.buses().find(one.peer);
    if (from == hwloc.buses().end() || (to != hwloc.buses().end() && to->second <= from->second)) continue;
    DescribedLink link;
    link.from = from->second;
    link.kind = "nvlink";
    link.bytes_per_s = one.bytes_per_s;
    if (to != hwloc.buses().end()) {
      link.to = to->second;
    } else {
      if (!nvswitch) {
        DescribedNode node;
        node.name = "w0.nvswitch0";
        node.kind = "nvswitch";
        node.worker = 0;
        nvswitch = graph.nodes.size();
        graph.nodes.push_back(std::move(node));
      }
      link.to = *nvswitch;
    }
    graph.links.push_back(std::move(link));
  }
}

}  // namespace

ImportedTopology import_hwloc(std::string_view text, const std::string& file, const ImportOptions& options) {
  HwlocTopology topology;
  const std::string copy = checked_hwloc_xml(text, file);
  // This fails on a bad file; loading all the same would describe this machine.
  if (hwloc_topology_set_xmlbuffer(topology.get(), copy.c_str(), static_cast<int>(copy.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    throw InputError({problem_at(file, kBeginning, "not a topology of hwloc; write it with `lstopo node.xml`")});
  }
  HwlocGraph graph(topology.get());
  ImportedTopology imported =
      build_described(graph.describe(), file, options, std::filesystem::path(file).stem().string());
  note_missing_nvlinks(graph, file, imported);
  return imported;
}

namespace {

// A plugin of hwloc reads the PCI devices with libpciaccess, which leaks.
bool load_this_machine(hwloc_topology_t topology) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler not_ours;
#endif
  return hwloc_topology_load(topology) == 0;
}

}  // namespace

ImportedTopology detect_machine(const ImportOptions& options) {
  HwlocTopology topology;
  if (!load_this_machine(topology.get())) throw UnavailableError("hwloc cannot tell this machine's topology");
  HwlocGraph hwloc(topology.get());
  DescribedGraph graph = hwloc.describe();
  read_memory(topology.get(), graph);
  for (const auto& [nic, node] : hwloc.nics()) read_port(nic, graph.nodes[node]);
  if (!hwloc.has_nvlinks()) add_nvml_links(hwloc, graph);
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return build_described(graph, "this machine", options, name.data());
}

#else

ImportedTopology import_hwloc(std::string_view, const std::string&, const ImportOptions&) {
  throw UnavailableError("a file of hwloc needs Tandem built with libhwloc-dev");
}

ImportedTopology detect_machine(const ImportOptions&) {
  throw UnavailableError("detecting a machine needs Tandem built with libhwloc-dev");
}

#endif

}  // namespace tandem
