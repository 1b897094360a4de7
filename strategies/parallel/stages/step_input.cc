#include "strategies/parallel/stages/step_input.h"

namespace tandem {
namespace {

Tensor room_for(const Tensor& tensor, Device& device) {
  return tensor ? device.allocate(tensor.dtype(), tensor.shape()) : Tensor();
}

}  // namespace

StepInput::StepInput(Device& device, const Batch& host) : device_(device) {
  for (Slot& slot : slots_) slot.batch = {room_for(host.inputs, device), room_for(host.labels, device)};
}

void StepInput::fetch(int step, const Batch& host) {
  Slot& to = slots_[slot(step)];
  Stream& stream = device_.stream(kInputStream);
  stream.wait(to.used);
  if (host.inputs) stream.copy(to.batch.inputs, host.inputs, Category::input);
  if (host.labels) stream.copy(to.batch.labels, host.labels, Category::input);
  to.ready = stream.record();
}

const Batch& StepInput::arrive(int step) const {
  const Slot& from = slots_[slot(step)];
  device_.compute_stream().wait(from.ready);
  return from.batch;
}

void StepInput::release(int step) {
  slots_[slot(step)].used = device_.compute_stream().record();
}

}  // namespace tandem
