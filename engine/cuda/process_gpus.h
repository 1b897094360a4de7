// The GPUs that this process can use, kept open over the runs of an engine.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/clock_log.h"
#include "engine/cuda/cuda_description.h"
#include "engine/cuda/cuda_machine.h"
#include "engine/threads/process_devices.h"

namespace tandem::cuda {

class ProcessGpus final : public threads::ProcessDevices {
 public:
  ProcessGpus();  // throws UnavailableError where there is no GPU, or no driver for it, with the reason

  const Capabilities& capabilities() const override { return capabilities_; }  // of the cuda engine
  std::vector<std::string> names() const override;                             // PCI bus ids
  std::unique_ptr<threads::ProcessMachine> begin_run(int first) override { return begin_run(first, false); }
  std::unique_ptr<CudaMachine> begin_run(int first, bool with_graphs);
  void end_run(threads::ProcessMachine& machine, Timeline& timeline) override;

 private:
  const Capabilities capabilities_;
  const std::shared_ptr<const Nvml> nvml_;
  Gpus gpus_;
  Settings settings_;
  std::unique_ptr<ClockLog> clocks_;  // of the run
};

}  // namespace tandem::cuda
