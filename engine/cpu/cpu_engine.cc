#include "engine/cpu/cpu_engine.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "engine/cpu/cpu_run.h"
#include "engine/kernels/kernels.h"

namespace tandem {
namespace {

std::string worker_text(const WorkerSpec& worker) {
  return fmt::format("/job:{}/task:{}", worker.job, worker.task);
}

void check_worker(const WorkerSpec& worker) {
  if (worker.device_type != DeviceType::cpu) {
    throw Error(fmt::format("engine 'cpu' has no devices of type {}, as {} asks for (it has CPU)",
                            name_of(worker.device_type), worker_text(worker)));
  }
  if (worker.device_count < 0) {
    throw Error(fmt::format("{} has {} devices, must be 0 or more", worker_text(worker), worker.device_count));
  }
  const DeviceId id{worker.job, worker.task, DeviceType::cpu, 0};
  if (DeviceId::parse(id.text(), {}) != id) {
    throw Error(fmt::format("{} is no name of a worker, must be like /job:worker/task:0", worker_text(worker)));
  }
}

void check_options(const EngineOptions& options) {
  if (options.values == Values::none) {
    throw Error("engine 'cpu' has no option values: none; its tensors always carry values (values: real)");
  }
  if (options.collectives) {
    throw Error("engine 'cpu' has no option collectives; it performs them, and models none");
  }
  if (options.schedule_seed) {
    throw Error("engine 'cpu' has no option schedule_seed; its threads are scheduled by the operating system");
  }
  if (!(options.deadlock_timeout_s > 0) || std::isinf(options.deadlock_timeout_s)) {
    throw Error(fmt::format("the deadlock timeout is {} s, must be greater than 0", options.deadlock_timeout_s));
  }
  if (options.workers.empty()) throw Error("engine 'cpu' needs at least one worker");
  std::set<std::pair<std::string, int>> names;
  for (const WorkerSpec& worker : options.workers) {
    check_worker(worker);
    if (!names.emplace(worker.job, worker.task).second) {
      throw Error(fmt::format("{} is there twice, must be there once", worker_text(worker)));
    }
  }
}

std::string compiler_text() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

Capabilities cpu_capabilities() {
  return {.engine = "cpu",
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = true,
          .remote_devices = true,
          .dtypes = cpu::cpu_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32},
          .device_types = {DeviceType::cpu},
          .max_devices_per_worker = 0};
}

class CpuEngine final : public Engine {
 public:
  explicit CpuEngine(EngineOptions options) : options_(std::move(options)), capabilities_(cpu_capabilities()) {}

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    cpu::CpuRun run(capabilities_, options_, memory_);
    Timeline timeline = run.run(program);
    timeline.settings = settings_;
    return timeline;
  }

 private:
  const EngineOptions options_;
  const Capabilities capabilities_;
  const std::map<std::string, std::string> settings_{{"hardware_threads", std::to_string(cpu::available_cores())},
                                                     {"blas", blas_description()},
                                                     {"compiler", compiler_text()}};
  // Of all runs, so that only the first pays for page faults.
  const std::shared_ptr<cpu::MemoryPool> memory_ = std::make_shared<cpu::MemoryPool>(cpu::physical_memory_bytes());
};

}  // namespace

std::unique_ptr<Engine> open_cpu_engine(EngineOptions options) {
  check_options(options);
  return std::make_unique<CpuEngine>(std::move(options));
}

}  // namespace tandem
