#include "strategies/cross_device/cross_device_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "engine/purpose.h"
#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/packing.h"
#include "strategies/variables/variable.h"

namespace tandem {
namespace {

void check_groups(const std::vector<TensorGroup>& groups, std::size_t devices) {
  for (const TensorGroup& group : groups) {
    if (group.size() != devices) {
      throw ValueError(fmt::format("a reduction over {} devices got {} tensors", devices, group.size()));
    }
    for (const Tensor& tensor : group) {
      if (tensor.shape() != group.front().shape() || tensor.dtype() != group.front().dtype()) {
        throw ValueError(fmt::format("replicas reduce tensors of different shapes: {} and {}",
                                     group.front().shape().text(), tensor.shape().text()));
      }
    }
  }
}

// What workers must agree on: "SUM of f32[2, 3], f32[4]".
std::string shapes_of(ReduceOp op, const std::vector<TensorGroup>& groups) {
  std::string text = fmt::format("{} of", name_of(op));
  for (const TensorGroup& group : groups) {
    const Tensor& tensor = group.front();
    text +=
        fmt::format("{}{}{}", &group == &groups.front() ? " " : ", ", name_of(tensor.dtype()), tensor.shape().text());
  }
  return text;
}

// Returns one value per device.
Value::Parts parts_of(const Value& value) {
  if (value.is_distributed()) return value.parts();
  if (value.is(ValueKind::variable)) return value.variable()->component_values();
  return {value};
}

// A reduction takes tensors only, also as variables, or IndexedSlices only.
void check_same_kind(const Value::Parts& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].is(ValueKind::sparse) == parts[0].is(ValueKind::sparse)) continue;
    throw TypeError(fmt::format("a reduction of {} at place 0 and {} at place {}: all devices give the same kind",
                                with_article(parts[0].kind()), with_article(parts[i].kind()), i));
  }
}

IndexedSlices scaled(const IndexedSlices& slices, double factor) {
  Device& device = slices.values.device();
  const Tensor rows = device.allocate(slices.values.dtype(), slices.values.shape());
  device.compute_stream().launch(as_communication(op::scale_add(rows, slices.values, factor, 0)));
  return {rows, slices.indices, slices.dense_shape};
}

TensorGroup tensors_of(const Value::Parts& parts) {
  TensorGroup group;
  for (const Value& part : parts)
    group.push_back(part.is(ValueKind::variable) ? part.variable()->value() : part.tensor());
  return group;
}

Value as_mirrored(const Value& value) {
  return value.is_distributed() ? value : Value::mirrored({value});
}

}  // namespace

CrossDeviceOps::CrossDeviceOps(Worker& worker, std::vector<Device*> devices, Packing packing)
    : worker_(worker),
      devices_(checked_devices(std::move(devices), "cross-device operations")),
      packing_(packing),
      issuing_(worker.tasks().make_monitor()) {
  check_packing(packing_);
}

// Lives while one call issues its work. Meanwhile no other call issues work, and the call's timeout is set.
class CrossDeviceOps::Issue {
 public:
  Issue(CrossDeviceOps& ops, const CommunicationOptions& options)
      : lock_(*ops.issuing_), ops_(ops), has_timeout_(options.timeout_seconds.has_value()) {
    if (has_timeout_) ops_.set_timeout(options.timeout_seconds);
  }
  ~Issue() {
    if (has_timeout_) ops_.set_timeout(std::nullopt);
  }
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;

 private:
  const std::lock_guard<Monitor> lock_;
  CrossDeviceOps& ops_;
  const bool has_timeout_;
};

std::vector<Event> CrossDeviceOps::all_reduce(ReduceOp op, const std::vector<TensorGroup>& groups,
                                              const CommunicationOptions& options) {
  check_communication_options(options);
  check_groups(groups, devices_.size());
  if (group_size() == 1) return {Event()};  // one replica: the value is its own sum and mean
  std::optional<CallDetail> noted;
  if (group_size() > static_cast<int>(devices_.size())) noted.emplace(shapes_of(op, groups));
  const Issue issue(*this, options);
  for (std::size_t d = 0; d < devices_.size(); ++d) stream(d).wait(devices_[d]->compute_stream().record());
  const Packing packing = options.bytes_per_pack > 0 ? Packing{.bytes_per_pack = options.bytes_per_pack} : packing_;
  PackedGroups packed(groups, packing, devices_);
  packed.pack();
  sum_in_place(packed.groups());
  if (op == ReduceOp::mean) {
    const double share = 1.0 / group_size();
    for (const TensorGroup& group : packed.groups()) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        stream(d).launch(as_communication(op::scale_add(group[d], group[d], share, 0)));
      }
    }
  }
  packed.unpack();
  std::vector<Event> ends;
  for (std::size_t d = 0; d < devices_.size(); ++d) ends.push_back(stream(d).record());
  return ends;
}

Tensor CrossDeviceOps::reduce_to(ReduceOp op, const TensorGroup& group, Device& destination) {
  if (group.empty()) throw ValueError("a reduction of no tensors");
  check_groups({group}, group.size());
  Stream& stream = destination.stream(kCommunicationStream);
  for (const Tensor& tensor : group) stream.wait(tensor.device().compute_stream().record());
  Tensor sum = sum_on(stream, group);
  if (op == ReduceOp::mean) {
    stream.launch(as_communication(op::scale_add(sum, sum, 1.0 / static_cast<double>(group.size()), 0)));
  }
  destination.compute_stream().wait(stream.record());
  return sum;
}

Tensor CrossDeviceOps::sum_on(Stream& stream, const TensorGroup& group) {
  Device& device = stream.device();
  Tensor sum = device.allocate(group.front().dtype(), group.front().shape());
  const Tensor part = device.allocate(group.front().dtype(), group.front().shape());
  for (std::size_t d = 0; d < group.size(); ++d) {
    stream.copy(d == 0 ? sum : part, group[d]);
    if (d > 0) stream.launch(as_communication(op::elementwise(kernel::Binary::add, sum, sum, part)));
  }
  return sum;
}

bool CrossDeviceOps::is_wanted_on_all(const Value& value, const Destinations& destinations) const {
  if (!value.is(ValueKind::per_replica) || value.parts().size() != devices_.size()) return false;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Value& part = value.parts()[d];
    if (!part.is(ValueKind::tensor) || &part.tensor().device() != devices_[d]) return false;
  }
  std::vector<Device*> wanted = destinations.resolve(worker_);
  return std::is_permutation(wanted.begin(), wanted.end(), devices_.begin(), devices_.end());
}

ReductionInFlight CrossDeviceOps::begin_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                     const CommunicationOptions& options) {
  check_communication_options(options);
  ReductionInFlight result;
  std::vector<TensorGroup> groups;
  for (const auto& [value, destinations] : pairs) {
    if (is_wanted_on_all(value, destinations)) {
      groups.push_back(tensors_of(value.parts()));
      result.values.push_back(value.parts().size() == 1 ? value.parts().front() : Value::mirrored(value.parts()));
    } else {
      result.values.push_back(reduce_apart(op, value, destinations.resolve(worker_), options));
    }
  }
  if (groups.empty()) return result;
  const std::vector<Event> ends = all_reduce(op, groups, options);
  for (std::size_t d = 0; d < devices_.size(); ++d) result.ends.emplace_back(&devices_[d]->compute_stream(), ends[d]);
  return result;
}

Value CrossDeviceOps::reduce_apart(ReduceOp op, const Value& value, const std::vector<Device*>& destinations,
                                   const CommunicationOptions& options) {
  const Value::Parts parts = parts_of(value);
  if (parts.empty()) throw ValueError("a reduction of no values");
  const Value& first = parts.front();
  check_same_kind(parts);
  if (first.is(ValueKind::sparse)) return reduce_slices(op, parts, destinations, options);
  if (!first.is(ValueKind::tensor) && !first.is(ValueKind::variable)) {
    throw ValueError(fmt::format("a reduction of {}: it takes tensors, variables and IndexedSlices, one a device",
                                 with_article(first.kind())));
  }
  if (group_size() > static_cast<int>(devices_.size()) && parts.size() == devices_.size()) {
    return reduce_over_workers(op, parts, destinations, options);
  }
  const TensorGroup group = tensors_of(parts);
  if (group.size() == 1) return copies_on(destinations, group.front());
  return copies_on(destinations, reduce_to(op, group, reducing_device(destinations)));
}

Value CrossDeviceOps::reduce_slices(ReduceOp op, const Value::Parts& parts, const std::vector<Device*>& destinations,
                                    const CommunicationOptions& options) {
  const bool is_of_all_devices = parts.size() == devices_.size();
  const double count = is_of_all_devices ? group_size() : static_cast<double>(parts.size());
  std::vector<IndexedSlices> slices, whole;
  for (const Value& part : parts) {
    slices.push_back(op == ReduceOp::mean ? scaled(part.slices(), 1 / count) : part.slices());
  }
  if (is_of_all_devices) {
    const Issue issue(*this, options);
    whole = concatenate_slices(slices, destinations);
  } else {
    whole = CrossDeviceOps::concatenate_slices(slices, destinations);
  }
  Value::Parts results(whole.begin(), whole.end());
  return results.size() == 1 ? results.front() : Value::mirrored(std::move(results));
}

std::vector<IndexedSlices> CrossDeviceOps::concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                              const std::vector<Device*>& destinations) {
  std::vector<IndexedSlices> whole;
  whole.reserve(destinations.size());
  for (Device* device : destinations) whole.push_back(concatenated(*device, slices));
  return whole;
}

Value CrossDeviceOps::reduce_over_workers(ReduceOp op, const Value::Parts& parts,
                                          const std::vector<Device*>& destinations,
                                          const CommunicationOptions& options) {
  Value::Parts own_parts;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    own_parts.emplace_back(copy_on(*devices_[d], tensors_of({parts[d]}).front()));
  }
  const TensorGroup group = tensors_of(copy_of_tensors(Value::per_replica(own_parts)).parts());
  const std::vector<Event> ends = all_reduce(op, {group}, options);
  for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d]->compute_stream().wait(ends[d]);
  Value::Parts results;
  for (Device* device : destinations) {
    const auto own = std::find_if(group.begin(), group.end(), [&](const Tensor& t) { return &t.device() == device; });
    results.emplace_back(own != group.end() ? *own : copy_on(*device, group.front()));
  }
  return results.size() == 1 ? results.front() : Value::mirrored(std::move(results));
}

Value CrossDeviceOps::reduce(ReduceOp op, const Value& value, const Destinations& destinations,
                             const CommunicationOptions& options) {
  return batch_reduce(op, {{value, destinations}}, options).front();
}

std::vector<Value> CrossDeviceOps::batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                const CommunicationOptions& options) {
  std::vector<ReducePair> kept;
  for (const auto& [value, destinations] : pairs) {
    const Value parts = value.is(ValueKind::variable) ? Value::per_replica(parts_of(value)) : value;
    kept.emplace_back(copy_of_tensors(parts), destinations);
  }
  std::vector<Value> results = begin_batch_reduce(op, kept, options).wait();
  std::transform(results.begin(), results.end(), results.begin(), as_mirrored);
  return results;
}

Value CrossDeviceOps::broadcast(const Value& value, const Destinations& destinations) {
  return as_mirrored(copies_on(destinations.resolve(worker_), value));
}

void CrossDeviceOps::add_from_peer(std::size_t to_device, const Tensor& to, const Tensor& from) {
  const Tensor staged = devices_[to_device]->allocate(from.dtype(), from.shape());
  stream(to_device).copy(staged, from);
  stream(to_device).launch(as_communication(op::elementwise(kernel::Binary::add, to, to, staged)));
}

void CrossDeviceOps::copy_to_peer(std::size_t to_device, const Tensor& to, std::size_t from_device,
                                  const Tensor& from) {
  order_after(to_device, from_device);
  stream(to_device).copy(to, from);
}

}  // namespace tandem
