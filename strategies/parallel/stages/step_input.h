// The input of a device, which is copied from the host while the step before it computes.
//
// Threads: the task of the device.
#pragma once

#include <array>

#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

class StepInput {
 public:
  // Has room for batches such as `host`.
  StepInput(Device& device, const Batch& host);

  // Copies the batch of a step to the device, once the one before the last is not in use any more.
  void fetch(int step, const Batch& host);
  // Lets the compute stream wait for it, and returns it.
  const Batch& arrive(int step) const;
  // The compute stream needs it no more after the work that it holds now.
  void release(int step);

 private:
  struct Slot {
    Batch batch{};
    Event ready{}, used{};
  };
  static std::size_t slot(int step) { return static_cast<std::size_t>(step % 2); }

  Device& device_;
  std::array<Slot, 2> slots_{};  // of this step and the next one
};

}  // namespace tandem
