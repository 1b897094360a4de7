#include "strategies/tower/cross_tower_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "strategies/base/errors.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/cross_device/packing.h"
#include "strategies/cross_device/small_tensors.h"
#include "strategies/tower/devices.h"
#include "strategies/variables/variable.h"

namespace tandem::tower {
namespace {

// Makes a value per device from a bare tensor, which is on one device, and from a variable, which has components.
Value as_per_device(const Value& value) {
  if (value.is_distributed()) return Value::per_replica(value.parts());
  if (value.is(ValueKind::variable)) {
    const std::vector<Tensor>& components = value.variable()->components();
    return Value::per_replica(Value::Parts(components.begin(), components.end()));
  }
  if (devices_of(value).empty()) {
    throw ValueError(fmt::format("{} is no value per device and has no device of its own", with_article(value.kind())));
  }
  return Value::per_replica({value});
}

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  ids.reserve(devices.size());
  for (const Device* device : devices) ids.push_back(device->id());
  return ids;
}

Packing packs(int num_packs) {
  const Packing packing{.num_packs = num_packs};
  check_packing(packing);
  return packing;
}

std::optional<std::int64_t> elements_of(const Value& per_device) {
  const Value& first = per_device.parts().front();
  if (!first.is(ValueKind::tensor)) return std::nullopt;
  return first.tensor().element_count();
}

}  // namespace

Value CrossTowerOps::reduce(VariableAggregation aggregation, const Value& per_device,
                            const Destinations& destinations) {
  return batch_reduce(aggregation, {{per_device, destinations}}).front();
}

std::vector<Value> CrossTowerOps::batch_reduce(VariableAggregation aggregation, const std::vector<ReducePair>& pairs) {
  const ReduceOp op = reduce_op_from_aggregation(aggregation);
  std::vector<ReducePair> resolved;
  for (const auto& [value, destinations] : pairs) {
    resolved.emplace_back(as_per_device(value), Destinations(destinations.resolve(worker_)));
    if (resolved.back().first.parts().empty()) throw ValueError("a reduction of no values");
  }
  return resolved.empty() ? std::vector<Value>{} : do_batch_reduce(op, resolved);
}

Value CrossTowerOps::broadcast(const Value& value, const Destinations& destinations) {
  return ops_for("reduction_to_one_device", value, {}).broadcast(value, Destinations(destinations.resolve(worker_)));
}

CrossDeviceOps& CrossTowerOps::ops_for(const std::string& name, const Value& value, const Packing& packing) {
  std::vector<Device*> devices = devices_of(value);
  if (devices.empty()) devices = {&worker_.cpu()};
  std::unique_ptr<CrossDeviceOps>& ops = ops_[{name, devices}];
  if (!ops) ops = make_cross_device_ops(name, worker_, devices, ids_of(devices), packing);
  return *ops;
}

std::vector<Value> ReductionToOneDeviceCrossTowerOps::do_batch_reduce(ReduceOp op,
                                                                      const std::vector<ReducePair>& pairs) {
  std::vector<Value> results;
  for (const auto& [value, destinations] : pairs) {
    CrossDeviceOps& ops = ops_for("reduction_to_one_device", value, {});
    const Destinations first = device_.empty() ? destinations : Destinations(device_);
    const Value reduced = ops.reduce(op, value, first);
    results.push_back(device_.empty() ? reduced : ops.broadcast(reduced.parts().front(), destinations));
  }
  return results;
}

AllReduceCrossTowerOps::AllReduceCrossTowerOps(Worker& worker, std::string all_reduce_alg, int num_packs,
                                               SmallGradients small)
    : CrossTowerOps(worker), algorithm_(std::move(all_reduce_alg)), packing_(packs(num_packs)) {
  if (algorithm_ != "nccl" && algorithm_ != "hierarchical_copy") {
    throw ValueError(fmt::format("unknown all-reduce '{}' (known: nccl, hierarchical_copy)", algorithm_));
  }
  if (choose_packer(num_packs, small.max_bytes, small.max_group) == TensorPacker::small_tensor_aggregation) {
    packing_.bytes_per_pack = small.max_bytes * small.max_group;
  }
}

std::vector<Value> AllReduceCrossTowerOps::do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) {
  return ops_for(algorithm_, pairs.front().first, packing_).batch_reduce(op, pairs);
}

MultiWorkerAllReduce::MultiWorkerAllReduce(Worker& worker, std::vector<AllReduceSpec> specs, int num_packs)
    : CrossTowerOps(worker), specs_(std::move(specs)), packing_(packs(num_packs)) {
  for (const AllReduceSpec& spec : specs_) check_all_reduce_algorithm(spec.algorithm);
}

std::vector<Value> MultiWorkerAllReduce::do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) {
  std::vector<std::optional<std::int64_t>> elements;
  elements.reserve(pairs.size());
  for (const ReducePair& pair : pairs) elements.push_back(elements_of(pair.first));
  const std::vector<std::vector<std::size_t>> assigned = assign_to_specs(specs_, elements);
  std::vector<Value> results(pairs.size());
  for (std::size_t s = 0; s < assigned.size(); ++s) {
    std::vector<ReducePair> together;
    for (const std::size_t i : assigned[s]) together.push_back(pairs[i]);
    if (together.empty()) continue;
    const char* name = specs_[s].algorithm == "nccl" ? "nccl" : "reduction_to_one_device";
    const std::vector<Value> reduced = ops_for(name, together.front().first, packing_).batch_reduce(op, together);
    for (std::size_t i = 0; i < reduced.size(); ++i) results[assigned[s][i]] = reduced[i];
  }
  return results;
}

CollectiveAllReduce::CollectiveAllReduce(Worker& worker, int num_workers, int num_gpus_per_worker, int num_packs)
    : CrossTowerOps(worker) {
  const std::vector<DeviceId> group = first_devices_in_sync(worker, num_gpus_per_worker);
  std::vector<Device*> devices = {&worker.cpu()};
  if (num_gpus_per_worker > 0) {
    const auto count = std::min(worker.devices().size(), static_cast<std::size_t>(num_gpus_per_worker));
    devices.assign(worker.devices().begin(), worker.devices().begin() + static_cast<std::ptrdiff_t>(count));
  }
  const auto per_worker = static_cast<std::size_t>(std::max(1, num_gpus_per_worker));
  if (per_worker != devices.size() || per_worker * static_cast<std::size_t>(num_workers) != group.size()) {
    throw ValueError(fmt::format("{} workers of {} devices, but there are {} devices, {} of them on this worker",
                                 num_workers, per_worker, group.size(), devices.size()));
  }
  collective_ = make_cross_device_ops("collective", worker, std::move(devices), group, packs(num_packs));
}

std::vector<Value> CollectiveAllReduce::do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) {
  return collective_->batch_reduce(op, pairs);
}

}  // namespace tandem::tower
