#include "topologies/readers/nvml_links.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>

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
constexpr int kNvmlSuccess = 0;
constexpr unsigned kMostNvlinks = 18;

// The library while it is in use.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(count_, "nvmlDeviceGetCount_v2");
    find(handle_, "nvmlDeviceGetHandleByIndex_v2");
    find(pci_, "nvmlDeviceGetPciInfo_v3");
    find(capability_, "nvmlDeviceGetCudaComputeCapability");
    find(state_, "nvmlDeviceGetNvLinkState");
    find(remote_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    is_ready_ = is_complete_ && init_() == kNvmlSuccess;
  }
  ~Nvml() {
    if (is_ready_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<NvmlLinks> links() {
    std::vector<NvmlLinks> found;
    unsigned count = 0;
    if (!is_ready_ || count_(&count) != kNvmlSuccess) return found;
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      NvmlPci own{};
      int major = 0, minor = 0;
      if (handle_(i, &device) != kNvmlSuccess || pci_(device, &own) != kNvmlSuccess ||
          capability_(device, &major, &minor) != kNvmlSuccess) {
        continue;
      }
      std::map<std::string, int> peers;
      for (unsigned link = 0; link < kMostNvlinks; ++link) {
        unsigned is_active = 0;
        NvmlPci peer{};
        if (state_(device, link, &is_active) != kNvmlSuccess || is_active == 0) continue;
        if (remote_(device, link, &peer) == kNvmlSuccess) ++peers[bus_text(peer)];
      }
      for (const auto& [peer, links] : peers) {
        found.push_back({bus_text(own), peer, links * nccl::nvlink_rate(major * 10 + minor)});
      }
    }
    return found;
  }

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    is_complete_ = is_complete_ && function != nullptr;
  }

  static std::string bus_text(const NvmlPci& pci) {
    return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
  }

  void* library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, NvmlDevice*) = nullptr;
  int (*pci_)(NvmlDevice, NvmlPci*) = nullptr;
  int (*capability_)(NvmlDevice, int*, int*) = nullptr;
  int (*state_)(NvmlDevice, unsigned, unsigned*) = nullptr;
  int (*remote_)(NvmlDevice, unsigned, NvmlPci*) = nullptr;
  bool is_complete_ = true, is_ready_ = false;
};

}  // namespace

std::vector<NvmlLinks> nvml_links() {
  return Nvml().links();
}

}  // namespace tandem
