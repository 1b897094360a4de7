// Reads what NVIDIA's management library knows about a GPU: the driver, its clocks and what holds them down, its power
// limit, and the programs on it.
//
// The library is loaded at run time: it comes with the driver, and a machine may lack it. Unknown values stay empty.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/timeline.h"
#include "topologies/base/nvml_library.h"

namespace tandem::cuda {

// A process that computes on a GPU, with the process id that the driver reports.
struct GpuProgram {
  unsigned process = 0;
  double share = 0;  // of the last second in which it kept the GPU busy; also 0 where the driver does not say
};

struct GpuState {
  std::optional<unsigned> sm_mhz{}, sm_most_mhz{};
  std::optional<unsigned> memory_mhz{}, memory_most_mhz{};
  std::optional<unsigned> power_limit_mw{};
  std::optional<std::uint64_t> slow_reasons{};  // bits: why the clocks are not higher
  std::optional<std::vector<GpuProgram>> programs{};
};

struct NvmlDeviceHandle;

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
  Nvml(std::shared_ptr<const NvmlLibrary> library, std::unique_ptr<Functions> functions);
  std::optional<std::vector<GpuProgram>> programs_of(NvmlDeviceHandle* device) const;

  const std::shared_ptr<const NvmlLibrary> library_;
  const std::unique_ptr<Functions> functions_;
};

// Sums up the readings of a GPU during a run of process `own`. In a container, the driver may know this process by
// another id: where no program has the id `own`, the busiest one is taken for it. Returns nothing where the readings
// say nothing.
std::optional<GpuUse> use_of(std::string gpu, std::span<const GpuState> readings, unsigned own);

// "SM 1755 of 1980 MHz, memory 3201 of 3201 MHz"; "" where nothing is known.
std::string clocks_text(const GpuState& state);

}  // namespace tandem::cuda
