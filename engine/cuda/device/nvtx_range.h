// Named ranges that NVIDIA's profilers show for the host's threads, in the domain "tandem". They cost almost nothing
// without a profiler.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace tandem::cuda {

// A range that lasts from construction to destruction, on one thread.
class NvtxRange {
 public:
  explicit NvtxRange(const std::string& name) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name.c_str();
    nvtxDomainRangePushEx(domain(), &event);
  }
  ~NvtxRange() { nvtxDomainRangePop(domain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t domain = nvtxDomainCreateA("tandem");
    return domain;
  }
};

}  // namespace tandem::cuda
