// The base of strategies that compute on several devices of a worker in step: it runs the replicas, combines their
// values with cross-device operations, and updates variables component by component.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/base/unmet_changes.h"
#include "strategies/cross_device/cross_device_ops.h"
#include "strategies/strategy/replica_group.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

// What the replicas compute on and how their values are combined.
struct ReplicatedSpec {
  std::vector<Device*> devices{};         // this worker's, in replica order; at least one, each once (ValueError)
  std::string cross_device_ops = "auto";  // see make_cross_device_ops
  Packing packing{};                      // of the operations named by `cross_device_ops`
  std::vector<DeviceId> group{};          // all devices in sync, of every worker, in replica order; empty: `devices`
  CommunicationOptions communication{};   // a bytes_per_pack that is set overrides `packing`
  std::shared_ptr<CrossDeviceOps> ops{};  // used instead of making some; for the same devices (ValueError)
};

class ReplicatedExtended : public StrategyExtended {
 public:
  ReplicatedExtended(Worker& worker, const ReplicatedSpec& spec);

  int num_replicas_in_sync() const override { return cross_device_ops_->group_size(); }
  const std::vector<Device*>& worker_devices() const override { return devices_; }
  const std::vector<Device*>& parameter_devices() const override { return devices_; }
  Worker& worker() const override { return worker_; }
  int first_replica_id() const override { return first_replica_id_; }
  std::string cross_device_ops_name() const override { return std::string(cross_device_ops_->name()); }
  void note_change(std::string_view call, const Variable& variable) override;

 protected:
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override;
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override;
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override;
  Value do_update_non_slot(const std::vector<Device*>& devices, const NonSlotFunction& function,
                           const Value::Parts& arguments, bool group) override;
  Value all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) override;
  void begin_all_reduce(ReduceOp op, const Value& tensors) override;
  Event all_reduce_end(int local_replica) const override { return ends_.at(static_cast<std::size_t>(local_replica)); }
  Value gather_to(const Value& value, int axis, const std::vector<Device*>& to) override;
  InputWorkers input_workers() override;
  Value reduce_number(ReduceOp op, const Value& value) override;
  Value reduce_over_workers(ReduceOp op, const Value& value) override;

  UnmetChanges& unmet_changes() { return unmet_changes_; }
  // Starts to reduce values with one part per device of this worker.
  virtual ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                            const CommunicationOptions& options);

  CrossDeviceOps& cross_device_ops() { return *cross_device_ops_; }
  const std::vector<DeviceId>& group() const { return group_; }  // all devices in sync, in replica order

 private:
  class GroupInUse;
  bool spans_workers() const { return cross_device_ops_->group_size() > static_cast<int>(devices_.size()); }
  CrossDeviceOps& ops_for(const std::vector<ReducePair>& pairs);
  Value shared_value(ReduceOp op, const Value& value) const;
  Value reduce_slices_over_hosts(ReduceOp op, const IndexedSlices& slices);
  bool is_component_of_one_device(const Value& value) const;

  Worker& worker_;
  std::vector<Device*> devices_;
  std::vector<DeviceId> group_;
  int first_replica_id_ = 0;
  std::shared_ptr<CrossDeviceOps> cross_device_ops_;
  std::unique_ptr<CrossDeviceOps> integer_ops_;             // made when 32-bit integers are first reduced
  std::vector<std::unique_ptr<ReplicaGroup>> idle_groups_;  // one is in use per level of nested run() calls
  UnmetChanges unmet_changes_;                              // of this worker; none where there is only one
  std::vector<Event> ends_;                                 // of the last begin_all_reduce
};

}  // namespace tandem
