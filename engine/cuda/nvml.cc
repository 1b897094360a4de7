#include "engine/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace tandem::cuda {

using NvmlDevice = struct NvmlDeviceHandle*;

namespace {

// Copied from nvml.h, whose numbers do not change; the header is not part of every toolkit.
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

std::string clock_text(const char* what, std::optional<unsigned> now, std::optional<unsigned> most) {
  if (!now && !most) return "";
  if (!now) return fmt::format("{} at most {} MHz", what, *most);
  return most ? fmt::format("{} {} of {} MHz", what, *now, *most) : fmt::format("{} {} MHz", what, *now);
}

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*most_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;

  bool load(void* library) {
    return find(library, "nvmlInit_v2", init) && find(library, "nvmlShutdown", shutdown) &&
           find(library, "nvmlSystemGetDriverVersion", driver_version) &&
           find(library, "nvmlDeviceGetHandleByPciBusId_v2", device) &&
           find(library, "nvmlDeviceGetClockInfo", clock) && find(library, "nvmlDeviceGetMaxClockInfo", most_clock) &&
           find(library, "nvmlDeviceGetEnforcedPowerLimit", power_limit);
  }
};

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions) : library_(library), functions_(std::move(functions)) {}

Nvml::~Nvml() {
  functions_->shutdown();
  dlclose(library_);
}

std::shared_ptr<const Nvml> Nvml::open(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->load(handle) || functions->init() != kSuccess) {
    dlclose(handle);
    return nullptr;
  }
  return std::shared_ptr<const Nvml>(new Nvml(handle, std::move(functions)));
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  const bool known = functions_->driver_version(text.data(), static_cast<unsigned>(text.size() - 1)) == kSuccess;
  return known ? text.data() : "";
}

GpuState Nvml::state_of(const std::string& pci_bus_id) const {
  NvmlDevice device = nullptr;
  if (functions_->device(pci_bus_id.c_str(), &device) != kSuccess) return {};
  unsigned value = 0;
  const auto known = [&value](int result) { return result == kSuccess ? std::optional(value) : std::nullopt; };
  GpuState state;
  state.sm_mhz = known(functions_->clock(device, kSmClock, &value));
  state.sm_most_mhz = known(functions_->most_clock(device, kSmClock, &value));
  state.memory_mhz = known(functions_->clock(device, kMemoryClock, &value));
  state.memory_most_mhz = known(functions_->most_clock(device, kMemoryClock, &value));
  state.power_limit_mw = known(functions_->power_limit(device, &value));
  return state;
}

std::string clocks_text(const GpuState& state) {
  const std::string sm = clock_text("SM", state.sm_mhz, state.sm_most_mhz);
  const std::string memory = clock_text("memory", state.memory_mhz, state.memory_most_mhz);
  return sm.empty() || memory.empty() ? sm + memory : sm + ", " + memory;
}

}  // namespace tandem::cuda
