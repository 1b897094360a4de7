// What NVIDIA's management library knows of a GPU: the driver, clocks and the power limit.
//
// The library is loaded at run time: it comes with the driver, and a machine may lack it. Unknown values stay empty.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tandem::cuda {

struct GpuState {
  std::optional<unsigned> sm_mhz{}, sm_most_mhz{};
  std::optional<unsigned> memory_mhz{}, memory_most_mhz{};
  std::optional<unsigned> power_limit_mw{};
};

class Nvml {
 public:
  // Returns null where the library is missing or does not start.
  static std::shared_ptr<const Nvml> open(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver_version() const;  // "580.82.07", or ""
  // `pci_bus_id` is what cudaDeviceGetPCIBusId gives, because the two libraries number GPUs differently.
  GpuState state_of(const std::string& pci_bus_id) const;

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);

  void* const library_;
  const std::unique_ptr<Functions> functions_;
};

// "SM 1755 of 1980 MHz, memory 3201 of 3201 MHz"; "" where nothing is known.
std::string clocks_text(const GpuState& state);

}  // namespace tandem::cuda
