// The communicator's own all-reduce, one call a pack: NcclAllReduce between the devices of a worker,
// CollectiveAllReduce between those of several.
#pragma once

#include <vector>

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

class CollectiveAllReduce : public CrossDeviceOps {
 public:
  // `group`: every device that takes part, of all workers, this worker's in the order of `devices`.
  CollectiveAllReduce(Worker& worker, std::vector<Device*> devices, const std::vector<DeviceId>& group,
                      Packing packing);
  std::string_view name() const override { return "collective"; }
  int group_size() const override { return communicator_.size(); }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  std::vector<IndexedSlices> concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                const std::vector<Device*>& destinations) override;
  std::vector<DeviceId> group_;
  Communicator& communicator_;
};

class NcclAllReduce final : public CollectiveAllReduce {
 public:
  NcclAllReduce(Worker& worker, const std::vector<Device*>& devices, Packing packing);
  std::string_view name() const override { return "nccl"; }
};

}  // namespace tandem
