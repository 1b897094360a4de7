// Values by device, as TensorFlow 1 keeps them: a distributed value maps devices to parts.
//
// A Value of the library keeps its parts in replica order; the functions here find a part by its device. That is the
// device the part names (Value::places) or, if none is named, the device that holds the part's tensor. Parts that have
// neither, such as numbers, texts and tensors left on the host, belong to the worker devices of the current strategy,
// in order. Device texts may be partial ("/device:GPU:0", "/cpu:0", ""): job and task default to the calling task's,
// the device to CPU:0.
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

// Completes a device text: "/cpu:0" becomes "/job:localhost/replica:0/task:0/device:CPU:0". AssertionError for a
// lower-case type after "device:".
std::string canonical_device(std::string_view device);

// Returns the device of the current tower or update, elsewhere the CPU:0 of the calling task.
std::string current_device();

// values.PerDevice and values.Mirrored: parts by device, in the order in which they were given.
class DistributedValues {
 public:
  using Index = std::vector<std::pair<std::string, Value>>;
  enum class Kind : std::uint8_t { per_device, mirrored };

  // Completes the keys; of two parts for one device the last one stays.
  explicit DistributedValues(const Index& index, Kind kind = Kind::per_device);
  static DistributedValues per_device(const Index& index) { return DistributedValues(index, Kind::per_device); }
  static DistributedValues mirrored(const Index& index) { return DistributedValues(index, Kind::mirrored); }
  // The parts of a distributed value, or the components of a variable. TypeError for any other value.
  static DistributedValues of(const Value& value);

  Kind kind() const { return kind_; }
  std::vector<std::string> devices() const;
  // Returns a device's part; ValueError when it has none.
  const Value& get(std::string_view device) const;
  // Returns the part of the current tower's or update's device (ValueError when it has none); elsewhere the part of the
  // current device, or else the first part.
  const Value& get() const;
  bool is_tensor_like() const;  // whether all parts are tensors
  // Converts to the library's form, which names the devices of its parts.
  Value value() const;

 private:
  const Value* find(std::string_view device) const;
  Index index_;
  Kind kind_;
};

// Replaces every distributed leaf and every variable by its part on `device`. ValueError for one that has no part
// there.
Value select_device(std::string_view device, const Value& value);
// Does the same for values without per-device leaves; TypeError for per-device leaves and sync-on-read variables.
Value select_device_mirrored(std::string_view device, const Value& value);

// Returns the parts of a distributed value or a variable in the order of `devices` when they are on exactly these, and
// otherwise in the order of the device texts. Parts that belong to no device keep their order. Returns any other value
// itself.
Value::Parts unwrapped(const std::vector<Device*>& devices, const Value& value);

// Gives every distributed leaf one part for each of `devices`, in their order; other leaves and variables stay as they
// are. ValueError for a leaf that lacks a device. TypeError for per-device leaves if `mirrored_only`.
Value in_device_order(const std::vector<Device*>& devices, const Value& value, bool mirrored_only = false);

}  // namespace tandem::tower
