#include "topologies/base/nvml_library.h"

#include <dlfcn.h>

namespace tandem {

std::shared_ptr<const NvmlLibrary> NvmlLibrary::open(const char* file) {
  void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  const std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  if (!library->find("nvmlInit_v2", init) || !library->find("nvmlShutdown", shutdown) || init() != kSuccess) {
    return nullptr;
  }
  library->shutdown_ = shutdown;
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (shutdown_ != nullptr) shutdown_();
  dlclose(handle_);
}

void* NvmlLibrary::address_of(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace tandem
