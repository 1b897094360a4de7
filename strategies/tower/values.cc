#include "strategies/tower/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "engine/task.h"
#include "engine/worker.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/device_names.h"
#include "strategies/cross_device/destinations.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"

namespace tandem::tower {
namespace {

// The device that part `i` belongs to when nothing says where it is.
std::string device_of_part(std::size_t i) {
  const std::vector<Device*>& devices = get_strategy().extended().worker_devices();
  if (i >= devices.size()) {
    throw ValueError(
        fmt::format("part {} of a value without devices, under a strategy of {} devices", i, devices.size()));
  }
  return devices[i]->id().text();
}

bool is_sync_on_read(const Value& value) {
  return value.is(ValueKind::variable) && value.variable()->kind() == VariableKind::sync_on_read;
}

// Tells whether each part has a device of its own: a named one, or the one that holds its tensor.
bool has_places(const Value& value) {
  if (value.is_distributed() && !value.places().empty()) return true;
  const std::vector<Device*> devices = devices_of(value);
  const std::set<const Device*> distinct(devices.begin(), devices.end());
  const std::size_t parts =
      value.is(ValueKind::variable) ? value.variable()->components().size() : value.parts().size();
  return devices.size() == parts && distinct.size() == parts;
}

void check_mirrored(const Value& leaf) {
  if (leaf.is(ValueKind::per_replica) || is_sync_on_read(leaf)) {
    throw TypeError("expected a mirrored value, found one per device");
  }
}

}  // namespace

std::string canonical_device(std::string_view device) {
  const Worker* worker = Task::current().worker();
  if (!worker) return canonicalize_device(device);
  return canonicalize_device(device, "", JoinedTask{.job = worker->job(), .task = worker->task()});
}

std::string current_device() {
  const Mode* mode = current_mode();
  if (mode && mode->replica && has_strategy()) return mode->replica->device().id().text();
  if (mode && mode->update_replica) {
    return mode->strategy->extended()
        .parameter_devices()
        .at(static_cast<std::size_t>(*mode->update_replica))
        ->id()
        .text();
  }
  return canonical_device("");
}

DistributedValues::DistributedValues(const Index& index, Kind kind) : kind_(kind) {
  for (const auto& [device, value] : index) {
    std::string key = canonical_device(device);
    const auto same = std::find_if(index_.begin(), index_.end(), [&](const auto& entry) { return entry.first == key; });
    if (same == index_.end()) {
      index_.emplace_back(std::move(key), value);
    } else {
      same->second = value;
    }
  }
}

DistributedValues DistributedValues::of(const Value& value) {
  Value::Parts parts;
  if (value.is(ValueKind::variable)) {
    parts = value.variable()->component_values();
  } else if (value.is_distributed()) {
    parts = value.parts();
  } else {
    throw TypeError(fmt::format("expected a distributed value, found {}", with_article(value.kind())));
  }
  const std::vector<std::string> names = value.is_distributed() ? value.places() : std::vector<std::string>{};
  const bool is_placed = has_places(value);
  Index index;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!names.empty()) {
      index.emplace_back(names.at(i), parts[i]);
    } else {
      index.emplace_back(is_placed ? devices_of(parts[i]).front()->id().text() : device_of_part(i), parts[i]);
    }
  }
  const bool is_mirrored = value.is(ValueKind::mirrored) || (value.is(ValueKind::variable) && !is_sync_on_read(value));
  return DistributedValues(index, is_mirrored ? Kind::mirrored : Kind::per_device);
}

std::vector<std::string> DistributedValues::devices() const {
  std::vector<std::string> devices;
  for (const auto& [device, unused] : index_) devices.push_back(device);
  return devices;
}

const Value* DistributedValues::find(std::string_view device) const {
  const auto found =
      std::find_if(index_.begin(), index_.end(), [&](const auto& entry) { return entry.first == device; });
  return found == index_.end() ? nullptr : &found->second;
}

const Value& DistributedValues::get(std::string_view device) const {
  const std::string key = canonical_device(device);
  if (const Value* part = find(key)) return *part;
  throw ValueError(
      fmt::format("device {} not found in {} (current device {})", key, fmt::join(devices(), ", "), current_device()));
}

const Value& DistributedValues::get() const {
  const Mode* mode = current_mode();
  const std::string here = current_device();
  if (mode && (mode->replica || mode->update_replica)) return get(here);
  const Value* part = find(here);
  if (!part && index_.empty()) throw ValueError("a distributed value without parts");
  return part ? *part : index_.front().second;
}

bool DistributedValues::is_tensor_like() const {
  return std::all_of(index_.begin(), index_.end(), [](const auto& entry) {
    return entry.second.is(ValueKind::tensor) || entry.second.is(ValueKind::sparse);
  });
}

Value DistributedValues::value() const {
  Value::Parts parts;
  for (const auto& [device, part] : index_) parts.push_back(part);
  return kind_ == Kind::mirrored ? Value::mirrored(std::move(parts), devices())
                                 : Value::per_replica(std::move(parts), devices());
}

Value::Parts unwrapped(const std::vector<Device*>& devices, const Value& value) {
  const bool is_container = value.is(ValueKind::variable) && value.variable()->components().size() > 1;
  if (!value.is_distributed() && !is_container) return {value};
  if (value.is_distributed() && !has_places(value)) return value.parts();
  const DistributedValues by_device = DistributedValues::of(value);
  std::vector<std::string> expected, order = by_device.devices();
  for (const Device* device : devices) expected.push_back(device->id().text());
  if (std::is_permutation(order.begin(), order.end(), expected.begin(), expected.end())) {
    order = expected;
  } else {
    std::sort(order.begin(), order.end());
  }
  Value::Parts parts;
  for (const std::string& device : order) parts.push_back(by_device.get(device));
  return parts;
}

Value select_device(std::string_view device, const Value& value) {
  return map_structure(value, [device](const Value& leaf) {
    const bool is_opened = leaf.is_distributed() || leaf.is(ValueKind::variable);
    return is_opened ? DistributedValues::of(leaf).get(device) : leaf;
  });
}

Value select_device_mirrored(std::string_view device, const Value& value) {
  return map_structure(value, [device](const Value& leaf) {
    check_mirrored(leaf);
    return select_device(device, leaf);
  });
}

Value in_device_order(const std::vector<Device*>& devices, const Value& value, bool mirrored_only) {
  return map_structure(value, [&](const Value& leaf) {
    if (mirrored_only) check_mirrored(leaf);
    if (!leaf.is_distributed()) return leaf;
    if (!has_places(leaf) && leaf.parts().size() == devices.size()) return leaf;
    const DistributedValues by_device = DistributedValues::of(leaf);
    Value::Parts parts;
    for (const Device* device : devices) parts.push_back(by_device.get(device->id().text()));
    return leaf.is(ValueKind::mirrored) ? Value::mirrored(std::move(parts)) : Value::per_replica(std::move(parts));
  });
}

}  // namespace tandem::tower
