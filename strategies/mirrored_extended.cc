#include "strategies/mirrored_extended.h"

#include <fmt/format.h>

#include "strategies/errors.h"
#include "strategies/mirrored.h"
#include "strategies/regroup.h"

namespace tandem {
namespace {

std::vector<Device*> checked(std::vector<Device*> devices) {
  if (devices.empty()) throw ValueError("a strategy needs at least one device");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[i] == devices[j]) throw ValueError(fmt::format("device {} is listed twice", devices[i]->id().text()));
    }
  }
  return devices;
}

TensorGroup tensors_of(const Value& value) {
  TensorGroup group;
  for (const Value& part : value.parts()) group.push_back(part.tensor());
  return group;
}

}  // namespace

MirroredExtended::MirroredExtended(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops,
                                   Packing packing)
    : worker_(worker),
      devices_(checked(std::move(devices))),
      cross_device_ops_(make_cross_device_ops(cross_device_ops, worker, devices_, packing)) {}

std::unique_ptr<ReplicaGroup> MirroredExtended::take_group(Strategy& strategy) {
  if (idle_groups_.empty()) return std::make_unique<ReplicaGroup>(strategy, worker_, devices_);
  std::unique_ptr<ReplicaGroup> group = std::move(idle_groups_.back());
  idle_groups_.pop_back();
  return group;
}

Value MirroredExtended::call_for_each_replica(Strategy& strategy, const ReplicaFunction& function,
                                              const Value::Parts& arguments) {
  if (devices_.size() == 1) {
    ReplicaContext context(strategy, 0, devices_.front(), nullptr);
    const ModeGuard mode(Mode{.strategy = &strategy, .replica = &context});
    Value::Parts mine;
    for (const Value& argument : arguments) mine.push_back(select_replica(0, argument));
    return function(mine);
  }
  std::unique_ptr<ReplicaGroup> group = take_group(strategy);
  Value result = group->run(function, arguments);
  idle_groups_.push_back(std::move(group));
  return result;
}

Value MirroredExtended::all_reduce(ReduceOp op, const Value& value) {
  if (!value.is_distributed()) {
    if (devices_.size() == 1 || op == ReduceOp::mean) return value;
    if (value.is(ValueKind::number) && value.number() == 0) return value;
    throw ValueError(fmt::format("SUM over {} replicas of a {} that is the same object in all of them", devices_.size(),
                                 name_of(value.kind())));
  }
  if (value.parts().front().is(ValueKind::number)) {
    double sum = 0;
    for (const Value& part : value.parts()) sum += part.number();
    return Value(op == ReduceOp::sum ? sum : sum / static_cast<double>(devices_.size()));
  }
  TensorGroup results;
  for (const Tensor& tensor : tensors_of(value)) {
    results.push_back(tensor.device().allocate(tensor.dtype(), tensor.shape()));
    tensor.device().compute_stream().copy(results.back(), tensor);
  }
  const std::vector<Event> ends = cross_device_ops_->all_reduce(op, {results});
  for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d]->compute_stream().wait(ends[d]);
  return Value::mirrored(Value::Parts(results.begin(), results.end()));
}

Value MirroredExtended::reduce_to(ReduceOp op, const Value& value, Device& destination) {
  const bool is_distributed = value.is_distributed();
  if (is_distributed) return cross_device_ops_->reduce_to(op, tensors_of(value), destination);
  const Tensor& from = value.tensor();
  if (&from.device() == &destination) return from;
  const Tensor to = destination.allocate(from.dtype(), from.shape());
  destination.compute_stream().wait(from.device().compute_stream().record());
  destination.compute_stream().copy(to, from);
  return to;
}

void MirroredExtended::begin_all_reduce(ReduceOp op, const Value& tensors) {
  std::vector<TensorGroup> groups;
  for (const Value& leaf : tensors.parts()) {
    groups.push_back(leaf.is_distributed() ? tensors_of(leaf) : TensorGroup{leaf.tensor()});
  }
  ends_ = cross_device_ops_->all_reduce(op, groups);
}

void MirroredExtended::update(
    Strategy& strategy, Variable& variable,
    const std::function<void(const Tensor& component, const Value::Parts& arguments)>& function,
    const Value::Parts& arguments) {
  for (int i = 0; i < num_replicas(); ++i) {
    const ModeGuard mode(Mode{.strategy = &strategy, .update_replica = i});
    Value::Parts mine;
    for (const Value& argument : arguments) mine.push_back(select_replica(i, argument));
    function(variable.components().at(static_cast<std::size_t>(i)), mine);
  }
}

MirroredStrategy::MirroredStrategy(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops,
                                   Packing packing)
    : Strategy("mirrored", std::make_unique<MirroredExtended>(worker, std::move(devices), cross_device_ops, packing)) {}

OneDeviceStrategy::OneDeviceStrategy(Worker& worker, Device& device)
    : Strategy("one_device",
               std::make_unique<MirroredExtended>(worker, std::vector<Device*>{&device}, "auto", Packing{})) {}

}  // namespace tandem
