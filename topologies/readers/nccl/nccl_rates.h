// The constants with which NCCL turns a topology file into rates: src/graph/topo.h and topo.cc, 2.30.7. All rates are
// in bytes/s, in one direction. For readers/nccl_xml.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "topologies/readers/pci_ids.h"
#include "topologies/topology.h"

namespace tandem::nccl {

inline constexpr double kLocal = 5000e9;          // NCCL's rate for links that cost nothing
inline constexpr double kUnknownPcie = 12e9;      // of a PCIe link whose speed and width are unknown
inline constexpr std::int64_t kMostLinks = 4096;  // between two devices

enum class PciClass : std::uint8_t { bridge, gpu, nic, nvswitch, nvlink_bridge };
PciClass pci_class(std::string_view text);  // "0x030200": by prefix; anything unknown is a bridge

// Returns width x speed / 80 GB/s. The speed is spelled as in the kernel, "16 GT/s" or "16.0 GT/s PCIe"; an unknown one
// counts as 8 GT/s.
double pci_rate(std::int64_t width, std::string_view speed);

double nvlink_rate(std::int64_t compute_capability);  // of one link

struct Cpu {
  std::string arch;    // x86_64, arm64, ppc64
  std::string vendor;  // GenuineIntel, AuthenticAMD, CentaurHauls, "  Shanghai  "
  std::int64_t family = 0;
  std::int64_t model = 0;
};
double numa_rate(const Cpu& cpu);

// Returns the GPU of an architecture such as "sm_80" or "gfx942", or null when unknown. A file does not name the
// product: among several of the same architecture the result is the one in the catalog, else a typical one whose
// figures are all assumed.
std::shared_ptr<const DeviceModel> gpu_model(std::string_view architecture);
// Returns the GPU of a product, whose figures are all assumed where no machine of the catalog has it. Never returns
// null.
std::shared_ptr<const DeviceModel> gpu_of_product(const PciGpu& product);
std::string known_architectures();  // for messages

// Returns the rate of one NVLink or xGMI link of an architecture.
double link_rate(const std::string& architecture);

// Returns the architecture that RCCL spells "906" or "gfx942"; its 910 is gfx90a.
std::string amd_architecture(std::string_view gcn);
double xgmi_rate(std::string_view architecture);  // of one link: ROCm/rccl src/graph/topo.h

}  // namespace tandem::nccl
