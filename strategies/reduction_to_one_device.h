// tf.distribute.ReductionToOneDevice: everything is copied to the first device, added there, and copied back.
#pragma once

#include "strategies/cross_device_ops.h"

namespace tandem {

class ReductionToOneDevice final : public CrossDeviceOps {
 public:
  ReductionToOneDevice(Worker& worker, std::vector<Device*> devices, Packing packing)
      : CrossDeviceOps(worker, std::move(devices), packing) {}
  std::string_view name() const override { return "reduction_to_one_device"; }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
};

}  // namespace tandem
