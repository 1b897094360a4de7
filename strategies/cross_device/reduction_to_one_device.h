// tf.distribute.ReductionToOneDevice: everything is copied to one device, added there, and copied back.
#pragma once

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

class ReductionToOneDevice final : public CrossDeviceOps {
 public:
  // `reduce_to`: any device of this worker; without it the first device, or the first destination of one value.
  ReductionToOneDevice(Worker& worker, std::vector<Device*> devices, Packing packing, Device* reduce_to = nullptr)
      : CrossDeviceOps(worker, std::move(devices), packing), reduce_to_(reduce_to) {}
  std::string_view name() const override { return "reduction_to_one_device"; }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  void sum_elsewhere(const TensorGroup& group, Device& device);
  Device& reducing_device(const std::vector<Device*>& destinations) const override {
    return reduce_to_ ? *reduce_to_ : *destinations.front();
  }

  Device* reduce_to_;
};

}  // namespace tandem
