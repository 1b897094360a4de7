#include "engine/cpu/cpu_engine.h"

#include <fmt/format.h>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_memory.h"
#include "engine/cpu/processor.h"
#include "engine/cpu/slow_down.h"
#include "engine/kernels/gemm.h"
#include "engine/threads/run.h"

namespace tandem {
namespace {

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
  return {.engine = std::string(cpu_engine_info().name),
          .carries_values = true,
          .deterministic = false,
          .host_functions_reach_devices = true,
          .remote_devices = true,
          .dtypes = cpu::cpu_dtypes(),
          .gemm_dtypes = {DType::f64, DType::f32},
          .device_types = {DeviceType::cpu},
          .max_devices_per_worker = 0,
          .hardware = {cpu::this_processor()}};
}

// Makes devices that are threads over host memory.
class CpuMachine final : public threads::Machine {
 public:
  bool computes_on_cores() const override { return true; }
  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override {
    return std::make_unique<cpu::CpuDevice>(context, worker, std::move(id), index);
  }
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(
      const std::vector<Device*>& /*devices*/) override {
    return nullptr;
  }
};

class CpuEngine final : public Engine {
 public:
  explicit CpuEngine(EngineOptions options) : options_(std::move(options)), capabilities_(cpu_capabilities()) {
    cpu::slow_down();  // throws for a wrong value, before the run
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Timeline run(const Program& program) override {
    CpuMachine machine;
    threads::Run run(capabilities_, options_, memory_, machine);
    Timeline timeline = run.run(program);
    timeline.settings = settings_;
    if (const double share = cpu::slow_down(); share > 0) {
      timeline.notes.push_back(
          fmt::format("slowed down on purpose: device work takes {:g} % longer (TANDEM_SLOW_DOWN)", share * 100));
    }
    return timeline;
  }

 private:
  const EngineOptions options_;
  const Capabilities capabilities_;
  const std::map<std::string, std::string> settings_{{"hardware_threads", std::to_string(threads::available_cores())},
                                                     {"blas", blas_description()},
                                                     {"compiler", compiler_text()}};
  // Shared by all runs, so that only the first pays for page faults.
  const std::shared_ptr<threads::BlockPool> memory_ = cpu::make_host_memory(cpu::physical_memory_bytes());
};

}  // namespace

std::unique_ptr<Engine> open_cpu_engine(EngineOptions options) {
  return std::make_unique<CpuEngine>(std::move(options));
}

LibraryVersions cpu_libraries() {
  return {{"openblas", blas_version()}};
}

}  // namespace tandem
