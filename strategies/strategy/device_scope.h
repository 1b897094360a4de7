// tf.device: where code places variables and work that nothing else places.
//
// As in TensorFlow, strategies place what is theirs, whatever the scopes say: the variables of Mirrored, OneDevice,
// CentralStorage and the parameter server strategies go where the strategy keeps them, and a replica starts on its own
// device. A scope decides
//   - where the default strategy, so a program outside every strategy's scope, creates variables, and
//   - what current_device() returns, for host work of a program and inside a replica function.
// Inner scopes replace the parts that they name of outer ones: "/cpu:0" inside "/job:ps/task:1" is CPU:0 of ps task 1.
//
// Threads: a scope belongs to the task that opened it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/worker.h"
#include "strategies/cluster/placement.h"
#include "strategies/strategy/context.h"

namespace tandem {

class DeviceScope {
 public:
  // "/job:ps/task:1", "/gpu:0", "GPU:0"; "" changes nothing. ValueError for a text that names no device.
  explicit DeviceScope(std::string_view device);
  // tf.device(tf.train.replica_device_setter(...)): the setter chooses a device for each variable, and what scopes
  // inside this one name is merged in.
  explicit DeviceScope(DeviceSetter setter);
  // Stops the program when a device scope that was opened inside is still open.
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  explicit DeviceScope(std::shared_ptr<const OpenDeviceScope> scope);
  std::size_t depth_;
};

// The open scopes of the calling task as one device text: for an op that is no variable, "" where nothing is named.
std::string device_scope_text();

// The device of the open scopes. What they leave open is that of the replica or, outside replicas, of the CPU:0 of the
// task's worker. RuntimeError outside a program, ValueError for scopes that name a device that the run does not have.
Device& current_device();

// Where the open scopes put a variable of `worker`'s program that no strategy places; what they leave open is that of
// the worker's CPU:0. ValueError, naming the variable, for a device that the run does not have.
Device& device_of_scopes(Worker& worker, const VariableSpec& spec);

}  // namespace tandem
