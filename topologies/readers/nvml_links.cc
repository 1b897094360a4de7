#include "topologies/readers/nvml_links.h"

#include <fmt/format.h>

#include <map>

#include "topologies/base/nvml_library.h"
#include "topologies/readers/nccl/nccl_rates.h"

namespace tandem {
namespace {

// The part of NVML's interface that is used here (nvml.h of CUDA 12).
using NvmlDevice = void*;
struct NvmlPci {
  char bus_legacy[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};
constexpr unsigned kMostNvlinks = 18;

struct NvmlFunctions {
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  int (*capability)(NvmlDevice, int*, int*) = nullptr;
  int (*state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*remote)(NvmlDevice, unsigned, NvmlPci*) = nullptr;

  bool load(const NvmlLibrary& library) {
    return library.find("nvmlDeviceGetCount_v2", count) && library.find("nvmlDeviceGetHandleByIndex_v2", handle) &&
           library.find("nvmlDeviceGetPciInfo_v3", pci) &&
           library.find("nvmlDeviceGetCudaComputeCapability", capability) &&
           library.find("nvmlDeviceGetNvLinkState", state) &&
           library.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", remote);
  }
};

std::string bus_text(const NvmlPci& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

void add_links(const NvmlFunctions& nvml, NvmlDevice device, std::vector<NvmlLinks>& found) {
  NvmlPci own{};
  int major = 0, minor = 0;
  if (nvml.pci(device, &own) != NvmlLibrary::kSuccess ||
      nvml.capability(device, &major, &minor) != NvmlLibrary::kSuccess) {
    return;
  }
  std::map<std::string, int> peers;
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    unsigned is_active = 0;
    NvmlPci peer{};
    if (nvml.state(device, link, &is_active) != NvmlLibrary::kSuccess || is_active == 0) continue;
    if (nvml.remote(device, link, &peer) == NvmlLibrary::kSuccess) ++peers[bus_text(peer)];
  }
  for (const auto& [peer, links] : peers) {
    found.push_back({bus_text(own), peer, links * nccl::nvlink_rate(major * 10 + minor)});
  }
}

}  // namespace

std::vector<NvmlLinks> nvml_links() {
  std::vector<NvmlLinks> found;
  const std::shared_ptr<const NvmlLibrary> library = NvmlLibrary::open();
  NvmlFunctions nvml;
  unsigned count = 0;
  if (library == nullptr || !nvml.load(*library) || nvml.count(&count) != NvmlLibrary::kSuccess) return found;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    if (nvml.handle(i, &device) == NvmlLibrary::kSuccess) add_links(nvml, device, found);
  }
  return found;
}

}  // namespace tandem
