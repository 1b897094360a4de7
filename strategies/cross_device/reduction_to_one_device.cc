#include "strategies/cross_device/reduction_to_one_device.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"

namespace tandem {

void ReductionToOneDevice::sum_in_place(const std::vector<TensorGroup>& groups) {
  Device& device = reduce_to_ ? *reduce_to_ : *devices().front();
  for (const TensorGroup& group : groups) {
    if (&device == devices().front() && !accumulate_) {
      sum_on_first(group);
    } else {
      sum_elsewhere(group, device);
    }
  }
  // The first device's tensors must not change until the others have read them.
  for (std::size_t d = 1; d < devices().size(); ++d) order_after(0, d);
}

void ReductionToOneDevice::sum_on_first(const TensorGroup& group) {
  for (std::size_t d = 1; d < group.size(); ++d) {
    order_after(0, d);
    add_from_peer(0, group[0], group[d]);
  }
  for (std::size_t d = 1; d < group.size(); ++d) copy_to_peer(d, group[d], 0, group[0]);
}

void ReductionToOneDevice::sum_elsewhere(const TensorGroup& group, Device& device) {
  Stream& there = device.stream(kCommunicationStream);
  for (std::size_t d = 0; d < group.size(); ++d) there.wait(stream(d).record());
  const Tensor sum = sum_on(there, group);
  const Event summed = there.record();
  for (std::size_t d = 0; d < group.size(); ++d) {
    stream(d).wait(summed);
    stream(d).copy(group[d], sum);
  }
  // The sum must not change until all have read it.
  for (std::size_t d = 0; d < group.size(); ++d) there.wait(stream(d).record());
}

Tensor ReductionToOneDevice::sum_on(Stream& stream, const TensorGroup& group) {
  if (!accumulate_) return CrossDeviceOps::sum_on(stream, group);
  std::vector<Tensor> here;
  for (const Tensor& tensor : group) {
    here.push_back(stream.device().allocate(tensor.dtype(), tensor.shape()));
    stream.copy(here.back(), tensor);
  }
  Tensor result = accumulate_(stream, here);
  const Tensor& first = group.front();
  const bool fits = result.shape() == first.shape() && result.dtype() == first.dtype();
  TANDEM_REQUIRE(
      fits && &result.device() == &stream.device(),
      fmt::format("accumulation_fn returned a tensor of shape {} on {}; it has to return one of shape {} and "
                  "the same element type on {}",
                  result.shape().text(), result.device().id().text(), first.shape().text(),
                  stream.device().id().text()));
  return result;
}

}  // namespace tandem
