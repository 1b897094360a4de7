// Values by device, as TensorFlow 1 keeps them: a distributed value maps devices to parts.
//
// A Value of the library holds its parts in replica order. Here parts are found by the device they stand on. Parts that
// do not each have one of their own (numbers, texts, tensors left on the host) count as standing on the current
// strategy's worker devices, in order. Device texts
// may be partial ("/device:GPU:0", "/cpu:0", ""): what is missing is this task's, then CPU:0.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/values/value.h"

namespace tandem {
class Device;
}

namespace tandem::tower {

// "/job:localhost/replica:0/task:0/device:CPU:0". AssertionError for a lower-case type after "device:".
std::string canonical_device(std::string_view device);

// The device of the current tower or update, else this task's CPU:0.
std::string current_device();

// values.PerDevice, values.Mirrored: parts by device, in the order given.
class DistributedValues {
 public:
  using Index = std::vector<std::pair<std::string, Value>>;
  enum class Kind : std::uint8_t { per_device, mirrored };

  // The keys are made canonical; of two parts for one device the last one stays.
  explicit DistributedValues(const Index& index, Kind kind = Kind::per_device);
  static DistributedValues per_device(const Index& index) { return DistributedValues(index, Kind::per_device); }
  static DistributedValues mirrored(const Index& index) { return DistributedValues(index, Kind::mirrored); }
  // Of a distributed value or a variable, whose parts are its components. TypeError for any other.
  static DistributedValues of(const Value& value);

  Kind kind() const { return kind_; }
  std::vector<std::string> devices() const;
  // The part of a device; ValueError when there is none.
  const Value& get(std::string_view device) const;
  // In a tower or an update that device's part (ValueError when there is none). Elsewhere the part on the current
  // device, or the first one.
  const Value& get() const;
  bool is_tensor_like() const;  // are all parts tensors?
  Value value() const;          // the library's form, parts in the order of the devices

 private:
  const Value* find(std::string_view device) const;
  Index index_;
  Kind kind_;
};

// The part on `device` of every distributed leaf and of every variable; other leaves stay. ValueError where a leaf has
// no part there.
Value select_device(std::string_view device, const Value& value);
// The same for values without per-device leaves, to which sync-on-read variables count (TypeError).
Value select_device_mirrored(std::string_view device, const Value& value);

// The parts of a distributed value or a variable: in the order of `devices` where they stand on exactly those, else by
// device text; parts that stand nowhere in theirs. Of anything else the value itself.
Value::Parts unwrapped(const std::vector<Device*>& devices, const Value& value);

// Distributed leaves with one part for each of the devices, in their order; variables and other leaves stay.
// ValueError where a leaf lacks a device. With `mirrored_only`, TypeError for per-device leaves.
Value in_device_order(const std::vector<Device*>& devices, const Value& value, bool mirrored_only = false);

}  // namespace tandem::tower
