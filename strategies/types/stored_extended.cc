#include "strategies/types/stored_extended.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategy/regroup.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

ReplicatedSpec spec_of(std::vector<Device*> devices, std::vector<DeviceId> in_sync) {
  const bool spans_workers = in_sync.size() > devices.size();
  return {.devices = std::move(devices),
          .cross_device_ops = spans_workers ? "auto" : "reduction_to_one_device",
          .group = std::move(in_sync)};
}

bool holds_numbers(const Value& value) {
  const Value& first = value.is_distributed() && !value.parts().empty() ? value.parts().front() : value;
  return first.is(ValueKind::number);
}

}  // namespace

std::vector<Device*> or_all_of(Worker& worker, std::vector<Device*> devices) {
  return devices.empty() ? all_devices_of(worker) : std::move(devices);
}

std::vector<Device*> local_parameter_device(Worker& worker, const std::vector<Device*>& compute) {
  return {compute.size() == 1 ? compute.front() : &worker.cpu()};
}

StoredExtended::StoredExtended(Worker& worker, std::vector<Device*> compute_devices,
                               std::vector<Device*> parameter_devices, std::vector<DeviceId> in_sync)
    : ReplicatedExtended(worker, spec_of(std::move(compute_devices), std::move(in_sync))),
      parameter_devices_(checked_devices(std::move(parameter_devices), "a strategy's parameters")),
      monitor_(worker.tasks().make_monitor()) {}

std::vector<Device*> StoredExtended::non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) {
  const auto first = std::min_element(variables.begin(), variables.end(),
                                      [](const auto& a, const auto& b) { return a->name() < b->name(); });
  return first == variables.end() ? std::vector<Device*>{} : (*first)->devices();
}

std::shared_ptr<StoredTensor> StoredExtended::new_store(const VariableSpec& spec, Device& device) const {
  auto stored = std::make_shared<StoredTensor>();
  stored->shared = make_shared_tensor(new_tensor(spec, device), worker().tasks().make_monitor());
  return stored;
}

Tensor StoredExtended::new_tensor(const VariableSpec& spec, Device& device) const {
  return make_components(spec, {&device}, worker().cpu()).front();
}

std::shared_ptr<Variable> StoredExtended::make_variable(const VariableSpec& spec) {
  Device& device = spec.colocate_with ? *spec.colocate_with->devices().front() : place(spec);
  return std::make_shared<StoredVariable>(strategy(), spec, store(spec, device), aggregates());
}

// Combines the replicas' values on one device of the worker that computed them.
Value StoredExtended::reduced_locally(ReduceOp op, const Value& value) {
  if (!value.is(ValueKind::per_replica)) return reduce_over_workers(op, value);
  if (holds_numbers(value)) return reduce_number(op, value);
  Device& first = *devices_of(value).front();
  const DeviceId host{.job = first.id().job, .task = first.id().task, .type = DeviceType::cpu, .index = 0};
  Device& meeting_point = value.parts().size() == 1 ? first : worker().device(host);
  return cross_device_ops().begin_batch_reduce(op, {{value, Destinations(meeting_point)}}).wait().front();
}

Value StoredExtended::all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) {
  if (value.is(ValueKind::per_replica) && !holds_numbers(value) && replicas_per_worker() > 1) {
    return reduced_locally(op, value);
  }
  return ReplicatedExtended::all_reduce(op, value, options);
}

Tensor StoredExtended::sent(const Tensor& tensor, Device& device) {
  if (&tensor.device() == &device) return tensor;
  Stream& link = link_stream(device, tensor.device().worker());
  Tensor copy = device.allocate(tensor.dtype(), tensor.shape());
  link.wait(tensor.device().compute_stream().record());
  link.copy(copy, tensor);
  const Event end = link.record();
  const std::lock_guard lock(*monitor_);
  // Whoever awaits what a lost worker has sent gets the error.
  std::erase_if(arrivals_, [this](const Arrival& arrival) {
    return arrival.event.is_complete() && !worker().is_lost(arrival.sender);
  });
  arrivals_.push_back({copy, end, tensor.device().worker()});
  return copy;
}

// Waits for a tensor that sent() has sent. On this worker the order of streams is enough. An update on a server that
// waited there for its data would hold up other workers' updates, so this worker waits before it issues the update.
void StoredExtended::await(const Tensor& tensor) {
  Event event;
  {
    const std::lock_guard lock(*monitor_);
    const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                    [&](const Arrival& arrival) { return arrival.tensor.is_same(tensor); });
    if (found == arrivals_.end()) return;
    event = found->event;
    arrivals_.erase(found);
  }
  if (tensor.device().worker() == worker().index()) {
    tensor.device().compute_stream().wait(event);
  } else {
    event.synchronize();
  }
}

Value StoredExtended::arrived(const Value& argument, Device& device) {
  return map_structure(select_replica(0, argument), [&](const Value& leaf) -> Value {
    if (leaf.is(ValueKind::tensor)) {
      Tensor there = sent(leaf.tensor(), device);
      await(there);
      return there;
    }
    if (leaf.is(ValueKind::sparse)) {
      IndexedSlices there{sent(leaf.slices().values, device), sent(leaf.slices().indices, device),
                          leaf.slices().dense_shape};
      await(there.values);
      await(there.indices);
      return there;
    }
    return leaf;
  });
}

ReductionInFlight StoredExtended::do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                     const CommunicationOptions& /*options*/) {
  ReductionInFlight result;
  for (const auto& [value, destinations] : pairs) {
    if (value.is(ValueKind::mirrored) || value.is(ValueKind::variable)) {
      result.values.push_back(value);
      continue;
    }
    if (holds_numbers(value)) {
      const Value number = value.is(ValueKind::per_replica) ? reduce_number(op, value) : reduce_over_workers(op, value);
      result.values.push_back(number_on(destinations, worker(), number));
      continue;
    }
    const std::vector<Device*> to = destinations.resolve(worker());
    for (const Device* device : to) {
      if (device->worker() == worker().index() || device->id().job == "ps") continue;
      throw ValueError(fmt::format("Cannot reduce to another worker: {} from {} {}", device->id().text(),
                                   worker().job(), worker().task()));
    }
    const Value here = reduced_locally(op, value);
    const bool is_remote = to.size() == 1 && to.front()->worker() != worker().index();
    if (is_remote && here.is(ValueKind::tensor)) {
      result.values.emplace_back(sent(here.tensor(), *to.front()));
    } else {
      result.values.push_back(is_remote ? here : copies_on(to, here));
    }
  }
  return result;
}

Value StoredExtended::do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                                const Value::Parts& arguments, bool group) {
  const auto stored = std::dynamic_pointer_cast<StoredVariable>(variable);
  const bool is_plain = !stored && variable->kind() == VariableKind::plain;
  if (!stored && !is_plain) {
    throw ValueError(
        fmt::format("update() of variable '{}', which is {} and was not created under this '{}' strategy: create it "
                    "inside the strategy's scope",
                    variable->name(), name_of(variable->kind()), strategy().name()));
  }
  Value::Parts here;
  for (const Value& argument : arguments) here.push_back(arrived(argument, *variable->devices().front()));
  Value result;
  const auto update = [&] {
    const ModeGuard mode(Mode{.strategy = &strategy(), .update_replica = 0});
    result = function(*variable, here);
  };
  if (is_plain) {
    update();
  } else {
    note_update(stored->apply(update, current_worker()));
  }
  return combine_updates({result}, group);
}

Staleness StoredExtended::staleness_of(std::optional<int> worker_index) const {
  Staleness total;
  for (const std::weak_ptr<Variable>& weak : variables()) {
    if (const auto stored = std::dynamic_pointer_cast<StoredVariable>(weak.lock()))
      total.add(stored->staleness(worker_index));
  }
  return total;
}

}  // namespace tandem
