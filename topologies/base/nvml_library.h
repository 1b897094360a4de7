// NVIDIA's management library, NVML, which comes with the driver and is loaded at run time: a machine may lack it.
#pragma once

#include <memory>

namespace tandem {

// The library while it is in use. Its numbers and layouts (nvml.h of CUDA 12) do not change; the header is not part of
// every toolkit.
class NvmlLibrary {
 public:
  static constexpr int kSuccess = 0;

  // Returns null where the library is missing or does not start.
  static std::shared_ptr<const NvmlLibrary> open(const char* file = "libnvidia-ml.so.1");
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  // Looks a function up. Returns whether this version of the library has it.
  template <typename Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
    return function != nullptr;
  }

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  void* address_of(const char* name) const;

  void* const handle_;
  int (*shutdown_)() = nullptr;
};

}  // namespace tandem
