#include "strategies/cross_device/reduction_to_one_device.h"

#include "strategies/cross_device/copies.h"

namespace tandem {

void ReductionToOneDevice::sum_in_place(const std::vector<TensorGroup>& groups) {
  for (const TensorGroup& group : groups) {
    if (reduce_to_ && reduce_to_ != devices().front()) {
      sum_elsewhere(group, *reduce_to_);
      continue;
    }
    for (std::size_t d = 1; d < group.size(); ++d) {
      order_after(0, d);
      add_from_peer(0, group[0], group[d]);
    }
    for (std::size_t d = 1; d < group.size(); ++d) copy_to_peer(d, group[d], 0, group[0]);
  }
  // The first device's tensors stay as they are until the others have read them.
  for (std::size_t d = 1; d < devices().size(); ++d) order_after(0, d);
}

void ReductionToOneDevice::sum_elsewhere(const TensorGroup& group, Device& device) {
  Stream& there = device.stream(kCommunicationStream);
  const Tensor sum = device.allocate(group.front().dtype(), group.front().shape());
  const Tensor part = device.allocate(group.front().dtype(), group.front().shape());
  for (std::size_t d = 0; d < group.size(); ++d) {
    there.wait(stream(d).record());
    there.copy(d == 0 ? sum : part, group[d]);
    if (d > 0) there.launch(as_communication(op::elementwise(kernel::Binary::add, sum, sum, part)));
  }
  const Event summed = there.record();
  for (std::size_t d = 0; d < group.size(); ++d) {
    stream(d).wait(summed);
    stream(d).copy(group[d], sum);
  }
  // The sum stays until all have read it.
  for (std::size_t d = 0; d < group.size(); ++d) there.wait(stream(d).record());
}

}  // namespace tandem
