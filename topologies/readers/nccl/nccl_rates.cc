#include "topologies/readers/nccl/nccl_rates.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "topologies/readers/catalog.h"

namespace tandem::nccl {
namespace {

constexpr double kGiga = 1e9;

struct CatalogGpu {
  std::string_view architecture;
  std::string_view node;
};
constexpr std::array<CatalogGpu, 14> kCatalogGpus{{{"sm_37", "azure-nc24-k80"},
                                                   {"sm_52", "pcie-m40-8gpu"},
                                                   {"sm_60", "dgx1-p100"},
                                                   {"sm_61", "pcie-1080ti-10gpu"},
                                                   {"sm_70", "dgx1-v100"},
                                                   {"sm_75", "aws-g4dn"},
                                                   {"sm_80", "dgx-a100"},
                                                   {"sm_89", "l40s-8gpu"},
                                                   {"sm_90", "hgx-h100"},
                                                   {"sm_100", "hgx-b200"},
                                                   {"sm_103", "hgx-b300"},
                                                   {"sm_120", "rtx-pro-6000-8gpu"},
                                                   {"gfx942", "mi300x-8gpu"},
                                                   {"gfx950", "mi355x-8gpu"}}};

// Figures from datasheets, for dense matrices.
struct TypicalGpu {
  std::string_view architecture;
  std::string_view name;
  double f32, tf32, f16;  // TFLOPS, dense; 0: none
  double memory_rate;     // GB/s
  double memory;          // GB
};
constexpr std::array<TypicalGpu, 16> kTypicalGpus{
    {{"sm_121", "NVIDIA GB10", 31, 62.5, 125, 273, 128},
     {"sm_86", "NVIDIA A40", 37.4, 74.8, 149.7, 696, 48},
     {"gfx906", "AMD Instinct MI60", 14.7, 0, 29.5, 1024, 32},
     {"gfx908", "AMD Instinct MI100", 46.1, 0, 184.6, 1229, 32},
     {"gfx90a", "AMD Instinct MI210", 45.3, 0, 181, 1638, 64},
     {"gfx900", "AMD Instinct MI25", 12.3, 0, 24.6, 484, 16},
     {"gfx940", "AMD Instinct MI300A", 122.6, 490.3, 980.6, 5300, 128},
     {"gfx941", "AMD Instinct MI300X", 163.4, 653.7, 1307.4, 5300, 192},
     // These share an architecture with a product above, which is taken if only the architecture is known.
     {"gfx90a", "AMD Instinct MI250X, one of its two dies", 47.9, 0, 191.5, 1638, 64},
     {"gfx942", "AMD Instinct MI325X", 163.4, 653.7, 1307.4, 6000, 256},
     {"gfx950", "AMD Instinct MI350X", 144.2, 0, 2306.9, 8000, 288},
     {"sm_80", "NVIDIA A30", 10.3, 82, 165, 933, 24},
     {"sm_89", "NVIDIA L40", 90.5, 90.5, 181, 864, 48},
     {"sm_90", "NVIDIA H100 NVL", 60, 417.5, 835.5, 3938, 94},
     {"sm_90", "NVIDIA H200 NVL", 60, 417.5, 835.5, 4800, 141},
     {"sm_90", "NVIDIA H20", 44, 74, 148, 4000, 96}}};

std::shared_ptr<const DeviceModel> typical_model(const TypicalGpu& gpu, const std::string& source) {
  const auto assumed = [&](double value) { return Figure{value, Provenance::assumed, source, "", 0}; };
  auto model = std::make_shared<DeviceModel>();
  model->name = gpu.name;
  model->id = "gpu";
  model->architecture = gpu.architecture;
  model->copy_engines = 2;
  model->peak_flops_per_s[DType::f32] = assumed(gpu.f32 * 1e12);
  if (gpu.tf32 > 0) model->peak_flops_per_s[DType::tf32] = assumed(gpu.tf32 * 1e12);
  const bool has_bf16 = gpu.tf32 > 0 || gpu.architecture == "gfx90a" || gpu.architecture == "gfx950";
  if (has_bf16) model->peak_flops_per_s[DType::bf16] = assumed(gpu.f16 * 1e12);
  model->peak_flops_per_s[DType::f16] = assumed(gpu.f16 * 1e12);
  model->memory_bandwidth_bytes_per_s = assumed(gpu.memory_rate * kGiga);
  model->memory_bytes = assumed(gpu.memory * kGiga);
  model->launch_overhead_s = assumed(1.8e-6);
  model->op_overhead_s = assumed(0.8e-6);
  model->synchronize_s = assumed(3.5e-6);
  model->gemm_efficiency = assumed(0.8);
  return model;
}

// Returns the catalog's GPU with the name and memory size of another product of its kind: "... 16 GB".
std::shared_ptr<const DeviceModel> of_other_size(const DeviceModel& like, const PciGpu& product) {
  auto model = std::make_shared<DeviceModel>(like);
  model->name = product.product;
  const auto unit = product.product.rfind(" GB");
  const auto number = unit == std::string_view::npos ? unit : product.product.rfind(' ', unit - 1);
  if (number == std::string_view::npos) return model;
  const double gigabytes = std::stod(std::string(product.product.substr(number + 1, unit - number - 1)));
  model->memory_bytes = {gigabytes * kGiga, Provenance::vendor, "the product's name in pci.ids", "", 0};
  return model;
}

double intel_rate(const Cpu& cpu) {
  if (cpu.family != 6) return 6 * kGiga;
  if (cpu.model >= 0xcf) return 40 * kGiga;  // Emerald Rapids and later
  if (cpu.model >= 0x8f) return 22 * kGiga;  // Sapphire Rapids
  if (cpu.model >= 0x55) return 10 * kGiga;  // Skylake
  return 6 * kGiga;
}

}  // namespace

PciClass pci_class(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, PciClass>, 6> kClasses{{{"0x060400", PciClass::bridge},
                                                                                  {"0x068000", PciClass::nvswitch},
                                                                                  {"0x068001", PciClass::nvlink_bridge},
                                                                                  {"0x03", PciClass::gpu},
                                                                                  {"0x12", PciClass::gpu},
                                                                                  {"0x02", PciClass::nic}}};
  for (const auto& [prefix, kind] : kClasses) {
    if (text.starts_with(prefix)) return kind;
  }
  return PciClass::bridge;
}

double pci_rate(std::int64_t width, std::string_view speed) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kSpeeds{
      {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
  std::string_view number = speed.substr(0, speed.find(' '));
  if (number.ends_with(".0")) number.remove_suffix(2);
  double factor = 60;
  for (const auto& [name, value] : kSpeeds) {
    if (name == number) factor = value;
  }
  return static_cast<double>(width == 0 ? 16 : width) * factor / 80 * kGiga;
}

double nvlink_rate(std::int64_t compute_capability) {
  if (compute_capability >= 100) return 40.1 * kGiga;
  if (compute_capability >= 90) return 20.6 * kGiga;
  if (compute_capability == 86) return 12 * kGiga;
  if (compute_capability >= 70) return 20 * kGiga;
  return 18 * kGiga;
}

double numa_rate(const Cpu& cpu) {
  if (cpu.arch == "arm64") return 6 * kGiga;
  if (cpu.arch == "ppc64") return 32 * kGiga;
  if (cpu.vendor == "GenuineIntel") return intel_rate(cpu);
  if (cpu.vendor == "AuthenticAMD") return 16 * kGiga;
  const bool is_yongfeng = cpu.family == 7 && cpu.model == 0x5b;  // the newer of Zhaoxin's
  return (is_yongfeng ? 9 : 6) * kGiga;
}

std::shared_ptr<const DeviceModel> gpu_model(std::string_view architecture) {
  for (const CatalogGpu& gpu : kCatalogGpus) {
    if (gpu.architecture != architecture) continue;
    const Topology node = load_catalog_node(gpu.node);
    return node.node(node.nodes_of(0, NodeKind::gpu).front()).device;
  }
  for (const TypicalGpu& gpu : kTypicalGpus) {
    if (gpu.architecture != architecture) continue;
    return typical_model(gpu, std::string(gpu.name) + " taken as the typical GPU of " + std::string(architecture) +
                                  "; the file does not name the product");
  }
  return nullptr;
}

std::shared_ptr<const DeviceModel> gpu_of_product(const PciGpu& product) {
  if (!product.machine.empty()) {
    const Topology node = load_catalog_node(product.machine);
    const auto device = node.node(node.nodes_of(0, NodeKind::gpu).front()).device;
    return device->name == product.product ? device : of_other_size(*device, product);
  }
  for (const TypicalGpu& gpu : kTypicalGpus) {
    if (gpu.name == product.product) return typical_model(gpu, "datasheet, dense; overheads as an A100's");
  }
  return gpu_model(product.architecture);
}

std::string amd_architecture(std::string_view gcn) {
  if (gcn.starts_with("gfx")) return std::string(gcn);
  return gcn == "910" ? "gfx90a" : "gfx" + std::string(gcn);
}

double xgmi_rate(std::string_view architecture) {
  if (architecture.starts_with("gfx94") || architecture.starts_with("gfx95")) return 48 * kGiga;
  if (architecture == "gfx90a") return 36 * kGiga;
  return 24 * kGiga;
}

double link_rate(const std::string& architecture) {
  if (architecture.starts_with("gfx")) return xgmi_rate(architecture);
  return nvlink_rate(architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0);
}

std::string known_architectures() {
  std::string text;
  const auto add = [&](std::string_view name) { text += (text.empty() ? "" : ", ") + std::string(name); };
  for (const CatalogGpu& gpu : kCatalogGpus) add(gpu.architecture);
  for (const TypicalGpu& gpu : kTypicalGpus) {
    if (text.find(gpu.architecture) == std::string::npos) add(gpu.architecture);
  }
  return text;
}

}  // namespace tandem::nccl
