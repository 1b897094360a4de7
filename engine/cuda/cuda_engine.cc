#include "engine/cuda/cuda_engine.h"

#include "engine/cuda/process_gpus.h"
#include "engine/threads/run.h"

namespace tandem {
namespace {

class CudaEngine final : public Engine {
 public:
  explicit CudaEngine(EngineOptions options) : options_(std::move(options)) {}

  const Capabilities& capabilities() const override { return gpus_.capabilities(); }

  Timeline run(const Program& program) override {
    const std::unique_ptr<cuda::CudaMachine> machine = gpus_.begin_run(0, options_.graphs);
    threads::Run run(capabilities(), options_, nullptr, *machine);
    Timeline timeline = run.run(program);
    gpus_.end_run(*machine, timeline);
    timeline.settings["graphs"] = options_.graphs ? "on" : "off";
    return timeline;
  }

 private:
  const EngineOptions options_;
  cuda::ProcessGpus gpus_;
};

}  // namespace

std::unique_ptr<Engine> open_cuda_engine(EngineOptions options) {
  return std::make_unique<CudaEngine>(std::move(options));
}

std::unique_ptr<threads::ProcessDevices> open_process_gpus() {
  return std::make_unique<cuda::ProcessGpus>();
}

}  // namespace tandem
