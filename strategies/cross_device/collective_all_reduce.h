// The communicator's own all-reduce, one call per pack: tf.distribute.NcclAllReduce between the devices of a worker,
// CollectiveAllReduce also between those of several.
#pragma once

#include <optional>
#include <vector>

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

class CollectiveAllReduce : public CrossDeviceOps {
 public:
  // `group`: every device that takes part, of all workers. Throws ValueError unless its size is a multiple of the
  // number of this worker's devices, and these follow each other in it in the order of `devices`. If set,
  // `bytes_per_pack` of the options overrides `packing`; their `timeout_seconds` is that of
  // Communicator::set_timeout().
  CollectiveAllReduce(Worker& worker, const std::vector<Device*>& devices, const std::vector<DeviceId>& group,
                      Packing packing = {}, const CommunicationOptions& options = {});
  std::string_view name() const override { return "collective"; }
  int group_size() const override { return communicator_.size(); }

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override;
  std::vector<IndexedSlices> concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                const std::vector<Device*>& destinations) override;
  void set_timeout(std::optional<double> timeout_s) override;

  std::vector<DeviceId> group_;
  Communicator& communicator_;
  std::optional<double> timeout_s_;
};

class NcclAllReduce final : public CollectiveAllReduce {
 public:
  NcclAllReduce(Worker& worker, const std::vector<Device*>& devices, Packing packing = {});
  std::string_view name() const override { return "nccl"; }
};

}  // namespace tandem
