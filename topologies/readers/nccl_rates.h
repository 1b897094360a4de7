// The constants with which NCCL turns a topology file into rates: src/graph/topo.h and topo.cc, 2.30.7.
// All in bytes/s, one direction. For readers/nccl_xml.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace tandem::nccl {

inline constexpr double kLocal = 5000e9;  // what NCCL takes for free

enum class PciClass : std::uint8_t { bridge, gpu, nic, nvswitch, nvlink_bridge };
PciClass pci_class(std::string_view text);  // "0x030200": by prefix; anything unknown is a bridge

// Width x speed / 80 GB/s. The speed as the kernel spells it, "16 GT/s" or "16.0 GT/s PCIe"; unknown: as 8 GT/s.
double pci_rate(std::int64_t width, std::string_view speed);

double nvlink_rate(std::int64_t compute_capability);  // of one link

struct Cpu {
  std::string arch;    // x86_64, arm64, ppc64
  std::string vendor;  // GenuineIntel, AuthenticAMD, CentaurHauls, "  Shanghai  "
  std::int64_t family = 0;
  std::int64_t model = 0;
};
double numa_rate(const Cpu& cpu);

// The GPU of a compute capability, or null when unknown. A file does not name the product: of several with the
// same capability it is the one in the catalog, else a typical one with every figure assumed.
std::shared_ptr<const DeviceModel> gpu_model(std::int64_t compute_capability);
std::string known_capabilities();  // for messages

}  // namespace tandem::nccl
