#include "engine/cuda/cuda_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/cpu/cpu_run.h"
#include "engine/cpu/run_options.h"
#include "engine/cuda/cuda_device.h"
#include "engine/cuda/cuda_error.h"
#include "engine/cuda/cuda_machine.h"

namespace tandem {
namespace {

using Settings = std::map<std::string, std::string>;

// 13.0 from 13000.
std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// 2.28.9 from 22809.
std::string nccl_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

int usable_gpus() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0) return gpus;
  const std::string reason = error == cudaSuccess ? "there is none" : cuda::error_text(error, "cudaGetDeviceCount");
  throw UnavailableError(fmt::format("engine 'cuda' finds no GPU to run on: {}", reason));
}

// What its libraries read from the environment decides the times; it is theirs to read, and ours to record.
void add_environment(Settings& settings) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    const bool counts = text.starts_with("NCCL_") || text.starts_with("CUDA_") || text.starts_with("CUBLAS_") ||
                        text.starts_with("NVIDIA_TF32_OVERRIDE=");
    if (counts && equals != text.npos) settings.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
}

// Long enough for any step; who expects less says so.
double watchdog_s() {
  constexpr double kUsual = 300;
  const char* text = std::getenv("TANDEM_CUDA_WATCHDOG_S");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double limit = std::strtod(text, &end);
  if (end != text && *end == '\0' && limit > 0) return limit;
  throw Error(fmt::format("TANDEM_CUDA_WATCHDOG_S is '{}', must be a number of seconds greater than 0", text));
}

Settings describe_machine(int gpus, double watchdog) {
  Settings settings;
  std::string names;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties", fmt::format("GPU {}", gpu));
    names += fmt::format("{}{} (compute capability {}.{})", names.empty() ? "" : ", ", properties.name,
                         properties.major, properties.minor);
  }
  int driver = 0, runtime = 0, nccl = 0;
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cuda::check(ncclGetVersion(&nccl), "ncclGetVersion");
  settings["gpus"] = names;
  settings["cuda_driver"] = cuda_version(driver);
  settings["cuda_runtime"] = cuda_version(runtime);
  settings["nccl"] = nccl_version(nccl);
  settings["watchdog"] = fmt::format("{} s", watchdog);
  add_environment(settings);
  return settings;
}

Capabilities cuda_capabilities() {
  return {.engine = "cuda",
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = false,
          .remote_devices = true,
          .seeded_schedule = false,
          .dtypes = cuda::cuda_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16},
          .device_types = {DeviceType::cpu, DeviceType::gpu},
          .max_devices_per_worker = 0};
}

class CudaEngine final : public Engine {
 public:
  CudaEngine(EngineOptions options, int gpus)
      : options_(std::move(options)),
        gpus_(gpus, watchdog_s()),
        settings_(describe_machine(gpus, gpus_.watchdog_s())) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    cuda::CudaMachine machine(gpus_, options_.graphs);
    cpu::CpuRun run(capabilities_, options_, nullptr, machine);
    Timeline timeline = run.run(program);
    timeline.settings = settings_;
    timeline.settings["graphs"] = options_.graphs ? "on" : "off";
    if (std::string paths = machine.collectives(); !paths.empty()) timeline.settings["collectives"] = std::move(paths);
    return timeline;
  }

 private:
  const EngineOptions options_;
  const Capabilities capabilities_ = cuda_capabilities();
  cuda::Gpus gpus_;
  const Settings settings_;
};

}  // namespace

std::unique_ptr<Engine> open_cuda_engine(EngineOptions options) {
  const int gpus = usable_gpus();
  cpu::check_options(options, "cuda", {DeviceType::cpu, DeviceType::gpu});
  return std::make_unique<CudaEngine>(std::move(options), gpus);
}

}  // namespace tandem
