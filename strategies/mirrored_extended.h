// StrategyExtended for one or more devices of one worker: what OneDevice and Mirrored share.
#pragma once

#include <memory>
#include <vector>

#include "strategies/replica_group.h"
#include "strategies/strategy.h"

namespace tandem {

class MirroredExtended final : public StrategyExtended {
 public:
  MirroredExtended(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops, Packing packing);

  int num_replicas() const override { return static_cast<int>(devices_.size()); }
  const std::vector<Device*>& worker_devices() const override { return devices_; }
  const std::vector<Device*>& parameter_devices() const override { return devices_; }
  Worker& worker() const override { return worker_; }
  Value call_for_each_replica(Strategy& strategy, const ReplicaFunction& function,
                              const Value::Parts& arguments) override;
  Value all_reduce(ReduceOp op, const Value& value) override;
  Value reduce_to(ReduceOp op, const Value& value, Device& destination) override;
  void begin_all_reduce(ReduceOp op, const Value& tensors) override;
  Event all_reduce_end(int replica) const override { return ends_.at(static_cast<std::size_t>(replica)); }
  void update(Strategy& strategy, Variable& variable,
              const std::function<void(const Tensor& component, const Value::Parts& arguments)>& function,
              const Value::Parts& arguments) override;
  std::string cross_device_ops_name() const override { return std::string(cross_device_ops_->name()); }

 private:
  std::unique_ptr<ReplicaGroup> take_group(Strategy& strategy);

  Worker& worker_;
  std::vector<Device*> devices_;
  std::unique_ptr<CrossDeviceOps> cross_device_ops_;
  std::vector<std::unique_ptr<ReplicaGroup>> idle_groups_;  // one is in use per level of nested run() calls
  std::vector<Event> ends_;                                 // of the last begin_all_reduce
};

}  // namespace tandem
