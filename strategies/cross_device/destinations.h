// Where the result of a reduction or a broadcast is wanted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "strategies/values/value.h"

namespace tandem {

class Variable;

// The devices of a value or a variable, or devices by name ("/device:CPU:0", as in DeviceId::parse). A list of names is
// for TensorFlow 1's calls; those of TensorFlow 2 refuse it.
class Destinations {
 public:
  Destinations() = default;
  Destinations(const char* device) : names_({device}) {}             // NOLINT(google-explicit-constructor)
  Destinations(std::string device) : names_({std::move(device)}) {}  // NOLINT(google-explicit-constructor)
  Destinations(std::vector<std::string> devices) : names_(std::move(devices)), is_list_(true) {}  // NOLINT
  Destinations(Device& device) : devices_({&device}) {}  // NOLINT(google-explicit-constructor)
  Destinations(std::vector<Device*> devices);  // NOLINT(google-explicit-constructor): ValueError for a null pointer
  Destinations(const Value& value);            // NOLINT(google-explicit-constructor)
  Destinations(const std::shared_ptr<Variable>& variable);  // NOLINT(google-explicit-constructor)

  bool is_empty() const { return names_.empty() && devices_.empty(); }
  bool is_list() const { return is_list_; }
  const std::shared_ptr<Variable>& variable() const { return variable_; }
  // Returns the devices in order. Throws ValueError without any, and for a name that is no device of `worker`'s
  // cluster.
  std::vector<Device*> resolve(Worker& worker) const;

 private:
  std::vector<std::string> names_;
  std::vector<Device*> devices_;
  std::shared_ptr<Variable> variable_;
  bool is_list_ = false;
};

// Returns the devices that hold a value's tensors, in order; none for numbers, texts and empty values.
std::vector<Device*> devices_of(const Value& value);

}  // namespace tandem
