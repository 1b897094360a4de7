#include "engine/cuda/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace tandem::cuda {

using NvmlDevice = NvmlDeviceHandle*;
struct NvmlProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct NvmlProcessSample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;  // percent
};

namespace {

constexpr int kSuccess = NvmlLibrary::kSuccess;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kInsufficientSize = 7;

// The reasons why clocks are not higher. A power limit is part of the machine's setup; the other reasons are
// disturbances.
constexpr std::uint64_t kPowerCap = 0x4;
constexpr std::uint64_t kHardware = 0x8;  // also set together with heat and the power supply
struct SlowReason {
  std::uint64_t bits;
  const char* name;
};
constexpr std::array<SlowReason, 3> kTroubles{
    {{0x20 | 0x40, "heat"}, {0x80, "the power supply"}, {kHardware, "the hardware"}}};

std::string clock_text(const char* what, std::optional<unsigned> now, std::optional<unsigned> most) {
  if (!now && !most) return "";
  if (!now) return fmt::format("{} at most {} MHz", what, *most);
  return most ? fmt::format("{} {} of {} MHz", what, *now, *most) : fmt::format("{} {} MHz", what, *now);
}

}  // namespace

struct Nvml::Functions {
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*most_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  // These are not in every version.
  int (*slow_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*process_samples)(NvmlDevice, NvmlProcessSample*, unsigned*, unsigned long long) = nullptr;

  bool load(const NvmlLibrary& library) {
    library.find("nvmlDeviceGetCurrentClocksEventReasons", slow_reasons) ||
        library.find("nvmlDeviceGetCurrentClocksThrottleReasons", slow_reasons);
    library.find("nvmlDeviceGetComputeRunningProcesses_v3", processes);
    library.find("nvmlDeviceGetProcessUtilization", process_samples);
    return library.find("nvmlSystemGetDriverVersion", driver_version) &&
           library.find("nvmlDeviceGetHandleByPciBusId_v2", device) && library.find("nvmlDeviceGetClockInfo", clock) &&
           library.find("nvmlDeviceGetMaxClockInfo", most_clock) &&
           library.find("nvmlDeviceGetEnforcedPowerLimit", power_limit);
  }
};

namespace {

// Calls for a list whose length only the library knows. Empty where it fails.
template <typename Item, typename Call>
std::optional<std::vector<Item>> list_of(const Call& call) {
  std::vector<Item> items(16);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto count = static_cast<unsigned>(items.size());
    const int result = call(items.data(), &count);
    if (result == kInsufficientSize) {
      items.resize(std::max<std::size_t>(count, 2 * items.size()));
      continue;
    }
    if (result != kSuccess) return std::nullopt;
    items.resize(std::min<std::size_t>(count, items.size()));
    return items;
  }
  return std::nullopt;
}

unsigned long long a_second_ago_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch() - std::chrono::seconds(1);
  return static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

// Returns all programs except this one.
std::vector<GpuProgram> others_of(std::vector<GpuProgram> programs, unsigned own) {
  auto mine = std::find_if(programs.begin(), programs.end(), [own](const auto& one) { return one.process == own; });
  if (mine == programs.end()) {
    mine = std::max_element(programs.begin(), programs.end(),
                            [](const auto& one, const auto& other) { return one.share < other.share; });
  }
  if (mine != programs.end()) programs.erase(mine);
  return programs;
}

void add_reasons(std::uint64_t reasons, GpuUse& use) {
  use.power_limited += (reasons & kPowerCap) != 0 ? 1 : 0;
  bool is_slowed = false;
  for (const auto& [bits, name] : kTroubles) {
    if ((reasons & bits) == 0 || (bits == kHardware && is_slowed)) continue;
    is_slowed = true;
    if (std::find(use.slowed_by.begin(), use.slowed_by.end(), name) == use.slowed_by.end()) {
      use.slowed_by.emplace_back(name);
    }
  }
  use.slowed += is_slowed ? 1 : 0;
}

}  // namespace

Nvml::Nvml(std::shared_ptr<const NvmlLibrary> library, std::unique_ptr<Functions> functions)
    : library_(std::move(library)), functions_(std::move(functions)) {}

Nvml::~Nvml() = default;

std::shared_ptr<const Nvml> Nvml::open(const char* library) {
  std::shared_ptr<const NvmlLibrary> opened = NvmlLibrary::open(library);
  auto functions = std::make_unique<Functions>();
  if (opened == nullptr || !functions->load(*opened)) return nullptr;
  return std::shared_ptr<const Nvml>(new Nvml(std::move(opened), std::move(functions)));
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
  unsigned long long reasons = 0;
  if (functions_->slow_reasons != nullptr && functions_->slow_reasons(device, &reasons) == kSuccess) {
    state.slow_reasons = reasons;
  }
  state.programs = programs_of(device);
  return state;
}

std::optional<std::vector<GpuProgram>> Nvml::programs_of(NvmlDeviceHandle* device) const {
  if (functions_->processes == nullptr) return std::nullopt;
  const auto processes = list_of<NvmlProcess>(
      [&](NvmlProcess* items, unsigned* count) { return functions_->processes(device, count, items); });
  if (!processes) return std::nullopt;
  std::vector<GpuProgram> programs;
  for (const NvmlProcess& process : *processes) programs.push_back({.process = process.pid});
  if (functions_->process_samples == nullptr) return programs;
  const auto samples = list_of<NvmlProcessSample>([&](NvmlProcessSample* items, unsigned* count) {
    return functions_->process_samples(device, items, count, a_second_ago_us());
  });
  for (GpuProgram& program : programs) {
    unsigned long long newest = 0;
    for (const NvmlProcessSample& sample : samples.value_or(std::vector<NvmlProcessSample>())) {
      if (sample.pid != program.process || sample.time_us < newest) continue;
      newest = sample.time_us;
      program.share = std::min(sample.sm, 100U) / 100.0;
    }
  }
  return programs;
}

std::optional<GpuUse> use_of(std::string gpu, std::span<const GpuState> readings, unsigned own) {
  GpuUse use{.gpu = std::move(gpu), .readings = static_cast<int>(readings.size())};
  bool is_known = false;
  for (const GpuState& reading : readings) {
    is_known = is_known || reading.slow_reasons || reading.programs;
    if (reading.slow_reasons) add_reasons(*reading.slow_reasons, use);
    if (!reading.programs) continue;
    const std::vector<GpuProgram> others = others_of(*reading.programs, own);
    use.other_programs = std::max(use.other_programs, static_cast<int>(others.size()));
    for (const GpuProgram& other : others) use.others_share += other.share / static_cast<double>(readings.size());
  }
  return is_known ? std::optional(use) : std::nullopt;
}

std::string clocks_text(const GpuState& state) {
  const std::string sm = clock_text("SM", state.sm_mhz, state.sm_most_mhz);
  const std::string memory = clock_text("memory", state.memory_mhz, state.memory_most_mhz);
  return sm.empty() || memory.empty() ? sm + memory : sm + ", " + memory;
}

}  // namespace tandem::cuda
