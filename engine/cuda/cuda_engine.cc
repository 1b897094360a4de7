#include "engine/cuda/cuda_engine.h"

#include <fmt/format.h>

#include <cstdlib>

#include "engine/cuda/clock_log.h"
#include "engine/cuda/cuda_description.h"
#include "engine/cuda/cuda_device.h"
#include "engine/cuda/cuda_error.h"
#include "engine/cuda/cuda_machine.h"
#include "engine/cuda/launch_turn.h"
#include "engine/threads/run.h"

namespace tandem {
namespace {

int usable_gpus() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0) return gpus;
  const std::string reason = error == cudaSuccess ? "there is none" : cuda::error_text(error, "cudaGetDeviceCount");
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

Capabilities cuda_capabilities(int gpus) {
  return {.engine = std::string(cuda_engine_info().name),
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = false,
          .remote_devices = true,
          .dtypes = cuda::cuda_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16},
          .device_types = {DeviceType::cpu, DeviceType::gpu},
          .max_devices_per_worker = 0,
          .hardware = cuda::machine_hardware(gpus)};
}

class CudaEngine final : public Engine {
 public:
  CudaEngine(EngineOptions options, int gpus)
      : options_(std::move(options)),
        capabilities_(cuda_capabilities(gpus)),
        gpus_(gpus, watchdog_s()),
        settings_(cuda::describe_machine(gpus, nvml_.get())) {
    cuda::LaunchTurn::set_timeout_s(gpus_.watchdog_s());
    settings_["watchdog"] = fmt::format("{} s", gpus_.watchdog_s());
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    cuda::ClockLog clocks(cuda::bus_ids(gpus_.count()), nvml_);
    cuda::CudaMachine machine(gpus_, options_.graphs);
    threads::Run run(capabilities_, options_, nullptr, machine);
    Timeline timeline = run.run(program);
    timeline.settings = settings_;
    timeline.settings["graphs"] = options_.graphs ? "on" : "off";
    timeline.settings["record_clock"] = gpus_.clock_text();
    if (std::string counts = gpus_.take_graph_counts(); !counts.empty()) {
      timeline.settings["graph_launches"] = std::move(counts);
    }
    cuda::add_clocks(clocks.finish(), timeline.settings);
    timeline.gpus = clocks.uses();
    if (std::string paths = machine.collectives(); !paths.empty()) timeline.settings["collectives"] = std::move(paths);
    return timeline;
  }

 private:
  const EngineOptions options_;
  const Capabilities capabilities_;
  const std::shared_ptr<const cuda::Nvml> nvml_ = cuda::Nvml::open();
  cuda::Gpus gpus_;
  cuda::Settings settings_;
};

}  // namespace

// By default NCCL connects GPUs at their first collective, which takes up to seconds. Unless the environment says
// otherwise, GPUs are connected when a communicator is made.
std::unique_ptr<Engine> open_cuda_engine(EngineOptions options) {
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  const int gpus = usable_gpus();
  return std::make_unique<CudaEngine>(std::move(options), gpus);
}

}  // namespace tandem
