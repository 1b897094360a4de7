#include "topologies/readers/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "topologies/base/error.h"
#include "topologies/figures.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/nccl/nccl_rates.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

constexpr double kNumaRate = 10e9;  // Skylake, NVIDIA/nccl 2.30.7 src/graph/topo.h

// The number of NVLinks of a GPU, and the rate of its PCIe link, from the datasheets of its generation.
struct Generation {
  std::string_view architecture;
  int nvlinks;
  double pcie;
};
constexpr std::array<Generation, 18> kGenerations{{{"sm_60", 4, 12e9},
                                                   {"sm_70", 6, 12e9},
                                                   {"sm_75", 2, 12e9},
                                                   {"sm_80", 12, 24e9},
                                                   {"sm_86", 4, 24e9},
                                                   {"sm_89", 0, 24e9},
                                                   {"sm_90", 18, 48e9},
                                                   {"sm_100", 18, 48e9},
                                                   {"sm_103", 18, 48e9},
                                                   {"sm_120", 0, 48e9},
                                                   {"gfx906", 2, 24e9},
                                                   {"gfx908", 3, 24e9},
                                                   {"gfx90a", 8, 24e9},
                                                   {"gfx940", 7, 48e9},
                                                   {"gfx941", 7, 48e9},
                                                   {"gfx942", 7, 48e9},
                                                   {"gfx950", 7, 48e9},
                                                   {"sm_61", 0, 12e9}}};

const Generation* generation_of(std::string_view architecture) {
  const auto found = std::find_if(kGenerations.begin(), kGenerations.end(),
                                  [&](const Generation& one) { return one.architecture == architecture; });
  return found == kGenerations.end() ? nullptr : &*found;
}

std::shared_ptr<const LinkModel> assumed_link(LinkKind kind, double rate, const std::string& source) {
  auto model = std::make_shared<LinkModel>();
  model->kind = kind;
  model->id = name_of(kind);
  model->bandwidth_bytes_per_s = {rate, Provenance::assumed, source, "", 0};
  model->latency_s = {0.2e-6, Provenance::assumed, "not in the file", "", 0};
  return model;
}

std::shared_ptr<const LinkModel> assumed_first_link(const Topology& machine, LinkKind kind, const std::string& name) {
  const auto found = first_link(machine, kind);
  return found ? std::make_shared<LinkModel>(assumed_as_in(name, *found)) : nullptr;
}

void borrow_machine(Borrowed& borrowed) {
  const Topology& machine = *borrowed.machine;
  const std::string& name = borrowed.name;
  const auto gpus = machine.nodes_of(0, NodeKind::gpu);
  const auto cpus = machine.nodes_of(0, NodeKind::cpu);
  const auto nics = machine.nodes_of(0, NodeKind::nic);
  if (!borrowed.gpu && !gpus.empty()) {
    borrowed.gpu = std::make_shared<DeviceModel>(assumed_as_in(name, *machine.device(gpus.front())));
  }
  if (!cpus.empty()) borrowed.cpu = std::make_shared<DeviceModel>(assumed_as_in(name, *machine.device(cpus.front())));
  borrowed.pcie = assumed_first_link(machine, LinkKind::pcie, name);
  borrowed.numa = assumed_first_link(machine, LinkKind::cpu_interconnect, name);
  if (!nics.empty() && machine.node(nics.front()).port) {
    borrowed.port = std::make_shared<LinkModel>(assumed_as_in(name, *machine.node(nics.front()).port));
  }
}

const DeviceModel* gpu_in(const Topology& machine) {
  const auto gpus = machine.nodes_of(0, NodeKind::gpu);
  return gpus.empty() ? nullptr : machine.device(gpus.front()).get();
}

void remark_on_options(const ImportOptions& options, const PciGpu* wanted, Borrowed& borrowed) {
  if (wanted != nullptr && borrowed.gpu->name != wanted->product) {
    borrowed.remarks.push_back(
        fmt::format("GPUs are {}, as the file tells; --gpu {} is left out", borrowed.gpu->name, options.gpu));
  }
  const DeviceModel* others = borrowed.machine ? gpu_in(*borrowed.machine) : nullptr;
  if (options.complete_with.empty() || others == nullptr || others->name == borrowed.gpu->name) return;
  borrowed.remarks.push_back(remark_on_other_gpus(*borrowed.gpu, borrowed.name, *others));
}

// Marks a figure as assumed. A figure that nobody stated is left alone.
void assume(const std::string& name, Figure& figure) {
  if (figure.value == 0 && figure.source.empty()) return;
  figure.provenance = Provenance::assumed;
  figure.source = "as in " + name + (figure.source.empty() ? "" : ": " + figure.source);
  figure.date.clear();
}

}  // namespace

std::vector<std::string> notes_of_unused(const ImportOptions& options) {
  std::string flags = options.gpu.empty() ? "" : "--gpu";
  if (!options.complete_with.empty()) flags += flags.empty() ? "--complete-with" : ", --complete-with";
  if (flags.empty()) return {};
  return {fmt::format("has no effect here: {}: the description lacks nothing", flags)};
}

const PciGpu* stated_gpu(const ImportOptions& options) {
  if (options.gpu.empty()) return nullptr;
  const PciGpu* product = find_gpu_named(options.gpu);
  if (product != nullptr) return product;
  throw InputError({{.file = "--gpu " + options.gpu,
                     .path = "",
                     .message = "unknown GPU; write its product, such as h100, a100-sxm4-40gb or mi300x"}});
}

Topology machine_to_complete_with(const std::string& name) {
  if (name.find_first_of("/.") != std::string::npos) return read_topology(name);
  const std::vector<std::string> known = catalog_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return load_catalog_node(name);
  const std::string nearest = nearest_name(name, known);
  throw InputError({{.file = "--complete-with " + name,
                     .path = "",
                     .message = "no machine of the catalog has this name" +
                                (nearest.empty() ? "" : "; did you mean '" + nearest + "'?")}});
}

std::optional<Completion> completion_of(const ImportOptions& options, const MachineClues& clues) {
  const std::string& wanted = options.complete_with;
  if (wanted == kNoMachine) return std::nullopt;
  if (!wanted.empty()) return Completion{machine_to_complete_with(wanted), wanted};
  for (const std::string& text : clues.texts) {
    const std::string name = machine_named_in(text);
    if (name.empty()) continue;
    Topology machine = load_catalog_node(name);
    if (clues.fits(machine)) return Completion{std::move(machine), name, "which the file's name or its comments name"};
    break;
  }
  const PciGpu* stated = stated_gpu(options);
  for (const PciGpu* product : {clues.product, stated}) {
    if (product == nullptr || product->machine.empty()) continue;
    const std::string name(product->machine);
    return Completion{load_catalog_node(name), name,
                      product == clues.product ? "the catalog's machine of the same GPU"
                                               : "the catalog's machine of the GPU that --gpu names"};
  }
  return std::nullopt;
}

std::shared_ptr<const LinkModel> first_link(const Topology& machine, LinkKind kind) {
  std::shared_ptr<const LinkModel> found;
  for (LinkIndex index = 0; index < machine.link_count(); ++index) {
    const Link link = machine.link(index);
    if (link.model->kind != kind) continue;
    if (machine.kind(link.from) == NodeKind::gpu || machine.kind(link.to) == NodeKind::gpu) return link.model;
    if (!found) found = link.model;
  }
  return found;
}

Borrowed borrow(const ImportOptions& options, const std::string& file, const PciGpu* product) {
  Borrowed borrowed;
  const PciGpu* wanted = stated_gpu(options);
  if (product == nullptr) product = wanted;
  const auto fits = [product](const Topology& machine) {
    const DeviceModel* gpu = gpu_in(machine);
    return product == nullptr || (gpu != nullptr && gpu->name == product->product);
  };
  const MachineClues clues{{std::filesystem::path(file).filename().string()}, product, fits};
  if (auto completion = completion_of(options, clues)) {
    borrowed.name = completion->name;
    borrowed.machine = std::move(completion->machine);
  }
  if (product != nullptr) borrowed.gpu = nccl::gpu_of_product(*product);
  if (product != nullptr) remark_on_options(options, wanted, borrowed);
  if (borrowed.machine) borrow_machine(borrowed);
  if (borrowed.name.empty() && product != nullptr) borrowed.name = product->product;
  const std::string architecture = borrowed.gpu ? borrowed.gpu->architecture : "";
  const Generation* generation = generation_of(architecture);
  if (!borrowed.pcie) {
    borrowed.pcie =
        generation != nullptr
            ? assumed_link(LinkKind::pcie, generation->pcie, "16 lanes of the generation of " + borrowed.name)
            : assumed_link(LinkKind::pcie, nccl::kUnknownPcie, "NCCL's rate where speed and width are unknown");
  }
  if (!borrowed.numa) {
    borrowed.numa = assumed_link(LinkKind::cpu_interconnect, kNumaRate, "Skylake, NVIDIA/nccl 2.30.7 src/graph/topo.h");
  }
  if (!borrowed.cpu) {
    const Topology host = make_host(1);
    borrowed.cpu = host.device(0);
  }
  borrowed.nvlinks = generation != nullptr ? generation->nvlinks : 0;
  borrowed.nvlink_bytes_per_s = nccl::link_rate(architecture);
  return borrowed;
}

bool p2p_as_in(const Topology& other, const Topology& topology) {
  if (other.facts().p2p) return true;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    if (topology.link_model(index).kind == LinkKind::nvlink) return true;
  }
  return false;
}

int nvlink_domain_as_in(const Topology& other, const Topology& topology) {
  const bool has_switch = topology.worker_count() == 1 && !topology.nodes_of(0, NodeKind::nvswitch).empty();
  return has_switch ? other.facts().nvlink_domain : 1;
}

std::string remark_on_other_gpus(const DeviceModel& own, const std::string& machine, const DeviceModel& others) {
  return fmt::format(
      "GPUs are {}, and those of {} are {}: links, NICs and processors that the file leaves open are taken from there "
      "all the same",
      own.name, machine, others.name);
}

LinkModel fastest_port_of(const PciNic& card) {
  LinkModel model;
  model.kind = LinkKind::network;
  model.id = "network";
  model.transport = card.transport;
  const std::string source = fmt::format("{}, PCI id {:04x}:{:04x}", card.product, card.vendor, card.device);
  model.bandwidth_bytes_per_s = {card.bytes_per_s, Provenance::assumed, source + ", its fastest port", "", 0};
  model.latency_s = {0.6e-6, Provenance::assumed, "not in the file; HDR InfiniBand", "", 0};
  return model;
}

DeviceModel assumed_as_in(const std::string& name, const DeviceModel& model) {
  DeviceModel copy = model;
  for (auto& [dtype, peak] : copy.peak_flops_per_s) assume(name, peak);
  for (Figure* figure :
       {&copy.memory_bandwidth_bytes_per_s, &copy.memory_bytes, &copy.boost_clock_hz, &copy.memory_latency_s,
        &copy.launch_overhead_s, &copy.op_overhead_s, &copy.synchronize_s, &copy.graph_launch_overhead_s,
        &copy.graph_op_overhead_s, &copy.wake_up_s, &copy.wake_call_s, &copy.hand_over_s, &copy.input_element_s,
        &copy.collective_slowdown, &copy.gemm_efficiency, &copy.sustained, &copy.sustained_quantised}) {
    assume(name, *figure);
  }
  return copy;
}

LinkModel assumed_as_in(const std::string& name, const LinkModel& model) {
  LinkModel copy = model;
  for (const auto& [key, figure] : kLinkFigures) assume(name, copy.*figure);
  return copy;
}

}  // namespace tandem
