// tf.distribute.ReductionToOneDevice: everything is copied to one device, added there, and copied back.
#pragma once

#include <functional>
#include <vector>

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

// Combines tensors of equal shape that are all on the stream's device: issues its work on the stream and returns the
// result, of the same shape and element type and on the same device (UsageError). Must not change the tensors.
using AccumulationFunction = std::function<Tensor(Stream& stream, const std::vector<Tensor>& tensors)>;

class ReductionToOneDevice final : public CrossDeviceOps {
 public:
  // `reduce_to_device`: any device of this worker; null: the first of `devices` or, for a value with destinations of
  // its own, the first of these. `accumulation_fn` replaces the addition; MEAN still divides by the number of devices.
  ReductionToOneDevice(Worker& worker, std::vector<Device*> devices, Packing packing = {},
                       Device* reduce_to_device = nullptr, AccumulationFunction accumulation_fn = {})
      : CrossDeviceOps(worker, std::move(devices), packing),
        reduce_to_(reduce_to_device),
        accumulate_(std::move(accumulation_fn)) {}
  std::string_view name() const override { return "reduction_to_one_device"; }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  void sum_on_first(const TensorGroup& group);
  void sum_elsewhere(const TensorGroup& group, Device& device);
  Tensor sum_on(Stream& stream, const TensorGroup& group) override;
  Device& reducing_device(const std::vector<Device*>& destinations) const override {
    return reduce_to_ ? *reduce_to_ : *destinations.front();
  }

  Device* reduce_to_;
  AccumulationFunction accumulate_;
};

}  // namespace tandem
