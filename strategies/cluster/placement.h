// TensorFlow's replica_device_setter and its placement strategies: which parameter server holds which variable.
//
// Threads: a placement keeps counts, so use each object from one thread. Workers agree because each counts for itself
// in the same order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.h"
#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// An operation that needs a device.
struct PlacedOp {
  std::string name{};
  bool is_variable = true;  // variables go to parameter servers, everything else to the worker
  Shape shape{};
  DType dtype = DType::f32;
};

using PlacementStrategy = std::function<int(const PlacedOp& op)>;  // returns the ps task of a variable
using LoadFunction = std::function<double(const PlacedOp& op)>;    // returns its load in any unit

double byte_size_load(const PlacedOp& op);

// Places each variable on the next task. Like the other placements, throws ValueError when there is no task.
class RoundRobinPlacement {
 public:
  explicit RoundRobinPlacement(int num_tasks);
  int operator()(const PlacedOp& op);

 private:
  int num_tasks_, next_ = 0;
};

// Places each variable on the task with the smallest sum of loads, the first if several have it.
class GreedyPlacement {
 public:
  explicit GreedyPlacement(int num_tasks, LoadFunction load = byte_size_load);
  int operator()(const PlacedOp& op);
  const std::vector<double>& loads() const { return loads_; }

 private:
  std::vector<double> loads_;
  LoadFunction load_;
};

// Places a variable by the MD5 digest of "<name>_<seed>", as a number, modulo the tasks: the same in every process.
class HashPlacement {
 public:
  explicit HashPlacement(int num_tasks, int seed = 0);
  int operator()(const PlacedOp& op) const;

 private:
  int num_tasks_, seed_;
};

struct DeviceSetterOptions {
  int ps_tasks = 0;
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  bool merge_devices = true;             // false: an op that asks for a device gets exactly that
  std::optional<ClusterSpec> cluster{};  // if given, the number of tasks is that of its job ps_device
  PlacementStrategy strategy{};          // if empty, round robin
};

// Gives each op a device: variables the ps device with a task that the strategy chooses, other ops the worker device;
// what the op asks for is merged in. An op that asks for another job gets no ps task.
class DeviceSetter {
 public:
  explicit DeviceSetter(DeviceSetterOptions options) : options_(std::move(options)) {}
  // `requested` is the text of the device scopes around the op (see merge_device_scopes).
  std::string device_of(const PlacedOp& op, std::string_view requested = "");

 private:
  DeviceSetterOptions options_;
};

// Returns nothing when there is no ps task: 0 tasks, or a cluster without the ps job.
std::optional<DeviceSetter> replica_device_setter(DeviceSetterOptions options);

}  // namespace tandem
