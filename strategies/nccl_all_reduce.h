// tf.distribute.NcclAllReduce: the communicator's own all-reduce, one call a pack.
#pragma once

#include "strategies/cross_device_ops.h"

namespace tandem {

class NcclAllReduce final : public CrossDeviceOps {
 public:
  NcclAllReduce(Worker& worker, std::vector<Device*> devices, Packing packing);
  std::string_view name() const override { return "nccl"; }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  Communicator& communicator_;
};

}  // namespace tandem
