#include "engine/cuda/process_gpus.h"

#include <fmt/format.h>

#include <cstdlib>

#include "engine/cuda/cuda_engine_info.h"
#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/kernels/launch_turn.h"

namespace tandem::cuda {
namespace {

int usable_gpus() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0) return gpus;
  const std::string reason = error == cudaSuccess ? "there is none" : error_text(error, "cudaGetDeviceCount");
  throw UnavailableError(fmt::format("engine 'cuda' finds no GPU to run on: {}", reason));
}

// Returns the watchdog's timeout: long enough for any step, unless the environment sets a shorter one.
double watchdog_s() {
  constexpr double kUsual = 300;
  const char* text = std::getenv("TANDEM_CUDA_WATCHDOG_S");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double timeout_s = std::strtod(text, &end);
  if (end != text && *end == '\0' && timeout_s > 0) return timeout_s;
  throw Error(fmt::format("TANDEM_CUDA_WATCHDOG_S is '{}', must be a number of seconds greater than 0", text));
}

Capabilities capabilities_of(int gpus) {
  return {.engine = std::string(cuda_engine_info().name),
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = false,
          .remote_devices = true,
          .selection_kernels = false,
          .dtypes = cuda_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16},
          .device_types = {DeviceType::cpu, DeviceType::gpu},
          .max_devices_per_worker = 0,
          .hardware = machine_hardware(gpus)};
}

// By default NCCL connects GPUs at their first collective, which takes up to seconds. Unless the environment says
// otherwise, GPUs are connected when a communicator is made.
int opened_gpus() {
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  return usable_gpus();
}

}  // namespace

ProcessGpus::ProcessGpus()
    : capabilities_(capabilities_of(opened_gpus())),
      nvml_(Nvml::open()),
      gpus_(usable_gpus(), watchdog_s()),
      settings_(describe_machine(gpus_.count(), nvml_.get())) {
  LaunchTurn::set_timeout_s(gpus_.watchdog_s());
  settings_["watchdog"] = fmt::format("{} s", gpus_.watchdog_s());
}

std::vector<std::string> ProcessGpus::names() const {
  return bus_ids(gpus_.count());
}

std::unique_ptr<CudaMachine> ProcessGpus::begin_run(int first, bool with_graphs) {
  clocks_ = std::make_unique<ClockLog>(names(), nvml_);
  return std::make_unique<CudaMachine>(gpus_, with_graphs, first);
}

void ProcessGpus::end_run(threads::ProcessMachine& machine, Timeline& timeline) {
  timeline.settings.insert(settings_.begin(), settings_.end());
  timeline.settings["record_clock"] = gpus_.clock_text();
  if (std::string counts = gpus_.take_graph_counts(); !counts.empty()) {
    timeline.settings["graph_launches"] = std::move(counts);
  }
  add_clocks(clocks_->finish(), timeline.settings);
  timeline.gpus = clocks_->uses();
  std::string paths = static_cast<CudaMachine&>(machine).collectives();
  if (!paths.empty()) timeline.settings["collectives"] = std::move(paths);
}

}  // namespace tandem::cuda
