// Which parameter server holds which variable, when TensorFlow's replica_device_setter places them.
//
// Threads: placements count, so one is driven from one thread; workers agree because each counts for itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.h"
#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// An operation that wants a device.
struct PlacedOp {
  std::string name{};
  bool is_variable = true;  // variables go to parameter servers, everything else to the worker
  Shape shape{};
  DType dtype = DType::f32;
};

using PlacementStrategy = std::function<int(const PlacedOp& op)>;  // the ps task of a variable
using LoadFunction = std::function<double(const PlacedOp& op)>;    // in any unit

double byte_size_load(const PlacedOp& op);

// Each variable on the next task. ValueError unless there is a task; the same for the others.
class RoundRobinPlacement {
 public:
  explicit RoundRobinPlacement(int num_tasks);
  int operator()(const PlacedOp& op);

 private:
  int num_tasks_, next_ = 0;
};

// Each variable on the task with the smallest sum of loads, the first of several.
class GreedyPlacement {
 public:
  explicit GreedyPlacement(int num_tasks, LoadFunction load = byte_size_load);
  int operator()(const PlacedOp& op);
  const std::vector<double>& loads() const { return loads_; }

 private:
  std::vector<double> loads_;
  LoadFunction load_;
};

// The MD5 digest of "<name>_<seed>", as a number, modulo the tasks: the same in every process.
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
  bool merge_devices = true;             // false: an op that asks for any device gets exactly that
  std::optional<ClusterSpec> cluster{};  // when given, its job of ps_device says how many tasks there are
  PlacementStrategy strategy{};          // else round robin
};

// Gives each op a device: the ps device with a task by the strategy, or the worker device; each with what the op asks
// for merged in. A ps task is only given where the op does not ask for another job.
class DeviceSetter {
 public:
  explicit DeviceSetter(DeviceSetterOptions options) : options_(std::move(options)) {}
  // `requested` is what the device scopes around the op say (see merge_device_scopes).
  std::string device_of(const PlacedOp& op, std::string_view requested = "");

 private:
  DeviceSetterOptions options_;
};

// Nothing where no task would be placed on: 0 tasks, or a cluster without the ps job.
std::optional<DeviceSetter> replica_device_setter(DeviceSetterOptions options);

}  // namespace tandem
