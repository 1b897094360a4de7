#include "strategies/types/replicated_extended.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/choose.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/gather.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/cross_device/reduction_to_one_device.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_arguments.h"

namespace tandem {
namespace {

std::vector<Device*> checked(const std::vector<Device*>& given) {
  std::vector<Device*> devices = checked_devices(given, "a strategy");
  if (devices.empty()) throw ValueError("a strategy needs at least one device");
  std::unordered_set<const Device*> seen;
  for (const Device* device : devices) {
    if (!seen.insert(device).second) throw ValueError(fmt::format("device {} is listed twice", device->id().text()));
  }
  return devices;
}

std::vector<DeviceId> group_of(const ReplicatedSpec& spec) {
  if (!spec.group.empty()) return spec.group;
  std::vector<DeviceId> ids;
  for (const Device* device : spec.devices) ids.push_back(device->id());
  return ids;
}

std::shared_ptr<CrossDeviceOps> ops_of(const ReplicatedSpec& spec, Worker& worker, const std::vector<DeviceId>& group) {
  if (!spec.ops) {
    return make_cross_device_ops(spec.cross_device_ops, worker, spec.devices, group, spec.packing, spec.communication);
  }
  if (spec.ops->devices() != spec.devices || spec.ops->group_size() != static_cast<int>(group.size())) {
    throw ValueError(fmt::format(
        "cross-device operations '{}' are for {} devices, {} of them here; the strategy's are "
        "{} and {}, and must be the same in the same order",
        spec.ops->name(), spec.ops->group_size(), spec.ops->devices().size(), group.size(), spec.devices.size()));
  }
  return spec.ops;
}

// Returns the element types of the pairs' tensors, and of the rows of IndexedSlices.
std::vector<DType> dtypes_of(const std::vector<ReducePair>& pairs) {
  std::vector<DType> dtypes;
  for (const auto& [value, destinations] : pairs) {
    const Value& first = value.is_distributed() && !value.parts().empty() ? value.parts().front() : value;
    if (first.is(ValueKind::tensor)) dtypes.push_back(first.tensor().dtype());
    if (first.is(ValueKind::sparse)) dtypes.push_back(first.slices().values.dtype());
  }
  return dtypes;
}

}  // namespace

ReplicatedExtended::ReplicatedExtended(Worker& worker, const ReplicatedSpec& spec)
    : worker_(worker),
      devices_(checked(spec.devices)),
      group_(group_of(spec)),
      cross_device_ops_(ops_of(spec, worker, group_)) {
  const auto first = std::find(group_.begin(), group_.end(), devices_.front()->id());
  if (first == group_.end() || group_.size() % devices_.size() != 0) {
    throw ValueError(
        fmt::format("{} devices in sync cannot be divided among workers of {}", group_.size(), devices_.size()));
  }
  first_replica_id_ = static_cast<int>(first - group_.begin());
  const std::optional<double>& timeout_s = spec.communication.timeout_seconds;
  if (!timeout_s) return;
  worker.communicator(group_).set_timeout(timeout_s);
  worker.communicator(hosts_of(group_)).set_timeout(timeout_s);
}

// Takes an idle or a new group for its lifetime, because nested run() calls need a group each.
class ReplicatedExtended::GroupInUse {
 public:
  explicit GroupInUse(ReplicatedExtended& owner) : owner_(owner) {
    if (owner.idle_groups_.empty()) {
      group_ = std::make_unique<ReplicaGroup>(owner.strategy(), owner.worker_, owner.devices_, owner.first_replica_id_);
    } else {
      group_ = std::move(owner.idle_groups_.back());
      owner.idle_groups_.pop_back();
    }
  }
  ~GroupInUse() { owner_.idle_groups_.push_back(std::move(group_)); }
  GroupInUse(const GroupInUse&) = delete;
  GroupInUse& operator=(const GroupInUse&) = delete;
  ReplicaGroup* operator->() const { return group_.get(); }

 private:
  ReplicatedExtended& owner_;
  std::unique_ptr<ReplicaGroup> group_;
};

Value ReplicatedExtended::do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) {
  if (devices_.size() > 1) return GroupInUse(*this)->run(function, arguments);
  check_arguments("run()", arguments, 1, "replicas");
  ReplicaContext context(strategy(), first_replica_id_, 0, devices_.front(), nullptr);
  const ModeGuard mode(Mode{.strategy = &strategy(), .replica = &context});
  return function(arguments_of(0, arguments));
}

// Returns the operations for values that are reduced together: 32-bit integers have their own, except over several
// workers, where TensorFlow makes no difference.
CrossDeviceOps& ReplicatedExtended::ops_for(const std::vector<ReducePair>& pairs) {
  if (spans_workers()) return *cross_device_ops_;
  const bool is_on_one_device =
      cross_device_ops_->name() == option_name_of(CrossDeviceAlgorithm::reduction_to_one_device);
  const CrossDeviceChoice chosen =
      is_on_one_device ? CrossDeviceChoice{} : CrossDeviceChoice{.algorithm = CrossDeviceAlgorithm::collective};
  if (choose_for_batch(chosen, dtypes_of(pairs)) == chosen) return *cross_device_ops_;
  if (!integer_ops_) integer_ops_ = std::make_unique<ReductionToOneDevice>(worker_, devices_, Packing{.num_packs = 0});
  return *integer_ops_;
}

// Reduces a value that is one object in all replicas: see docs/tensorflow.md, "shared values".
Value ReplicatedExtended::shared_value(ReduceOp op, const Value& value) const {
  if (op == ReduceOp::mean || num_replicas_in_sync() == 1) return value;
  if (value.is(ValueKind::number) && value.number() == 0) return value;
  const std::string what = value.is(ValueKind::number) ? fmt::format("value {:.1f}", value.number())
                                                       : fmt::format("{}", name_of(value.kind()));
  throw ValueError(
      fmt::format("{} over {} replicas of the non-DistributedValues {}: the same object in all of them "
                  "would count {} times; return a value per replica",
                  name_of(op), num_replicas_in_sync(), what, num_replicas_in_sync()));
}

void ReplicatedExtended::note_change(std::string_view call, const Variable& variable) {
  if (spans_workers()) {
    unmet_changes_.add(fmt::format("{} of variable '{}'", call, canonical_name(variable.name())));
  }
}

Value ReplicatedExtended::reduce_number(ReduceOp op, const Value& value) {
  const MeetingOfWorkers meeting(unmet_changes_);
  double sum = 0;
  const Value::Parts bare = {value};
  const Value::Parts& parts = value.is_distributed() ? value.parts() : bare;
  for (const Value& part : parts) sum += part.number();
  auto count = static_cast<double>(parts.size());
  if (spans_workers()) {
    Device& host = worker_.cpu();
    const Tensor total = host_tensor(host, DType::f64, {1}, [sum](std::int64_t) { return sum; });
    const int workers = all_reduce_over_hosts(worker_, group_, total);
    sum = host_number(worker_, total);
    count *= workers;
  }
  return op == ReduceOp::sum ? sum : sum / count;
}

Value ReplicatedExtended::reduce_over_workers(ReduceOp op, const Value& value) {
  if (!spans_workers()) return shared_value(op, value);
  const MeetingOfWorkers meeting(unmet_changes_);
  if (value.is(ValueKind::number)) return reduce_number(op, value);
  if (value.is(ValueKind::sparse)) return reduce_slices_over_hosts(op, value.slices());
  const Tensor& tensor = value.tensor();
  Tensor total = worker_.cpu().allocate(tensor.dtype(), tensor.shape());
  worker_.cpu().compute_stream().copy(total, copied_to_host(worker_, tensor));
  const int workers = all_reduce_over_hosts(worker_, group_, total);
  if (op == ReduceOp::mean) worker_.cpu().compute_stream().launch(op::scale_add(total, total, 1.0 / workers, 0));
  return total;
}

// Concatenates each worker's slices once, in worker order.
Value ReplicatedExtended::reduce_slices_over_hosts(ReduceOp op, const IndexedSlices& slices) {
  const std::vector<DeviceId> hosts = hosts_of(group_);
  const std::vector<Device*> host = {&worker_.cpu()};
  const Tensor rows = gather_over_group(worker_, host, hosts, {slices.values}, 0).front();
  const Tensor indices = gather_over_group(worker_, host, hosts, {slices.indices}, 0).front();
  if (op == ReduceOp::mean) {
    host.front()->compute_stream().launch(op::scale_add(rows, rows, 1.0 / static_cast<double>(hosts.size()), 0));
  }
  return IndexedSlices{rows, indices, slices.dense_shape};
}

Value ReplicatedExtended::all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) {
  const MeetingOfWorkers meeting(unmet_changes_);
  if (!value.is_distributed()) {
    if (!spans_workers()) return shared_value(op, value);
    return all_reduce(op, Value::per_replica(Value::Parts(devices_.size(), value)), options);  // once per replica
  }
  const Value& first = value.parts().front();
  if (first.is(ValueKind::number)) return reduce_number(op, value);
  Value::Parts parts;
  for (const Value& part : value.parts()) {
    const std::vector<Device*> own = {devices_.at(parts.size())};
    parts.push_back(copies_on(own, part));
  }
  const std::vector<ReducePair> pairs = {{copy_of_tensors(Value::per_replica(parts)), Destinations(devices_)}};
  return begin_reduction(op, pairs, options).wait().front();
}

ReductionInFlight ReplicatedExtended::begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                      const CommunicationOptions& options) {
  return ops_for(pairs).begin_batch_reduce(op, pairs, options);
}

void ReplicatedExtended::begin_all_reduce(ReduceOp op, const Value& tensors) {
  const MeetingOfWorkers meeting(unmet_changes_);
  std::vector<TensorGroup> groups;
  for (const Value& leaf : tensors.parts()) {
    const Value::Parts bare = {leaf};
    TensorGroup group;
    for (const Value& part : leaf.is_distributed() ? leaf.parts() : bare) group.push_back(part.tensor());
    groups.push_back(std::move(group));
  }
  ends_ = cross_device_ops_->all_reduce(op, groups);
}

Value ReplicatedExtended::gather_to(const Value& value, int axis, const std::vector<Device*>& to) {
  const bool is_one_of_several = spans_workers() && devices_.size() == 1;
  if (!value.is_distributed() && !is_one_of_several) return value;
  const Value::Parts bare = {value};
  std::vector<Tensor> parts;
  for (const Value& part : value.is_distributed() ? value.parts() : bare) {
    parts.push_back(gathered_part(worker_, *worker_devices().at(parts.size()), part));
  }
  if (!spans_workers()) {
    check_gather(parts, axis);
    Value::Parts results;
    for (Device* device : to) results.emplace_back(concatenated(*device, parts, axis));
    return results.size() == 1 ? results.front() : Value::mirrored(std::move(results));
  }
  const MeetingOfWorkers meeting(unmet_changes_);
  const std::vector<Tensor> whole = gather_over_group(worker_, devices_, group_, parts, axis);
  Value::Parts results;
  for (Device* device : to) {
    const auto own = std::find_if(whole.begin(), whole.end(), [&](const Tensor& t) { return &t.device() == device; });
    results.emplace_back(own != whole.end() ? *own : copy_on(*device, whole.front()));
  }
  return results.size() == 1 ? results.front() : Value::mirrored(std::move(results));
}

InputWorkers ReplicatedExtended::input_workers() {
  InputWorkers workers{.worker = worker_,
                       .devices = devices_,
                       .num_workers = static_cast<int>(group_.size() / devices_.size()),
                       .pipeline_id = first_replica_id_ / static_cast<int>(devices_.size()),
                       .num_replicas_in_sync = num_replicas_in_sync()};
  if (spans_workers()) workers.any_worker_has_data = agree_over(worker_, hosts_of(group_));
  return workers;
}

ReductionInFlight ReplicatedExtended::do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                         const CommunicationOptions& options) {
  const MeetingOfWorkers meeting(unmet_changes_);
  std::vector<ReducePair> distributed;
  std::vector<std::size_t> places;
  std::vector<Value> values(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [value, destinations] = pairs[i];
    const bool is_component = is_component_of_one_device(value);
    if (value.is(ValueKind::per_replica) && !value.parts().empty() && value.parts().front().is(ValueKind::number)) {
      values[i] = number_on(destinations, worker_, reduce_number(op, value));
    } else if (value.is(ValueKind::per_replica) || is_component) {
      distributed.emplace_back(is_component ? Value::per_replica({value}) : value, destinations);
      places.push_back(i);
    } else if (value.is(ValueKind::mirrored) || value.is(ValueKind::variable)) {
      values[i] = value;
    } else if (value.is(ValueKind::number)) {
      values[i] = number_on(destinations, worker_, reduce_over_workers(op, value));
    } else {
      values[i] = copies_on(destinations.resolve(worker_), reduce_over_workers(op, value));
    }
  }
  ReductionInFlight result = begin_reduction(op, distributed, options);
  for (std::size_t i = 0; i < places.size(); ++i) values[places[i]] = result.values[i];
  result.values = std::move(values);
  return result;
}

// Returns whether a bare value belongs to one replica: run() does not wrap the result of a worker's only replica.
bool ReplicatedExtended::is_component_of_one_device(const Value& value) const {
  if (!spans_workers() || devices_.size() > 1) return false;
  return (value.is(ValueKind::tensor) || value.is(ValueKind::sparse)) && devices_of(value).front() == devices_.front();
}

Value ReplicatedExtended::do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                                    const Value::Parts& arguments, bool group) {
  check_arguments("update()", arguments, variable->components().size(), "components");
  Value::Parts results;
  for (int i = 0; i < static_cast<int>(variable->components().size()); ++i) {
    const ModeGuard mode(Mode{.strategy = &strategy(), .update_replica = i});
    results.push_back(function(*variable, arguments_of(i, arguments)));
  }
  return combine_updates(results, group);
}

Value ReplicatedExtended::do_update_non_slot(const std::vector<Device*>& devices, const NonSlotFunction& function,
                                             const Value::Parts& arguments, bool group) {
  if (devices.empty()) throw AssertionError("update_non_slot() on no device: see non_slot_devices()");
  check_arguments("update_non_slot()", arguments, devices.size(), "devices");
  Value::Parts results;
  for (int i = 0; i < static_cast<int>(devices.size()); ++i) {
    const ModeGuard mode(Mode{.strategy = &strategy(), .update_replica = i});
    results.push_back(function(arguments_of(i, arguments)));
  }
  return combine_updates(results, group);
}

}  // namespace tandem
