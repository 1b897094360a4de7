// Where a process learns which cluster it is in, and which task of it: TensorFlow's tf.distribute.cluster_resolver.
//
// Threads: const functions may be called from any thread while nobody calls a setter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// "grpc://host:port", or the bare address when the layer is empty.
std::string format_master_url(const std::string& address, const std::string& rpc_layer);

// Which task is meant; what is missing is up to the resolver.
struct TaskQuery {
  std::optional<std::string> task_type{};
  std::optional<int> task_id{};
  std::optional<std::string> rpc_layer{};
};

using AcceleratorCounts = std::map<std::string, int>;  // by device type, as {"GPU": 8}

class ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  virtual ClusterSpec cluster_spec() const = 0;
  // The address to open a session at. ValueError for a task that the cluster does not have.
  std::string master(std::optional<std::string> task_type = {}, std::optional<int> task_id = {},
                     std::optional<std::string> rpc_layer = {}) const;
  // The accelerators that are visible to a task. Device names are filtered by job and task when both are known.
  AcceleratorCounts num_accelerators(std::optional<std::string> task_type = {}, std::optional<int> task_id = {}) const;

  virtual std::optional<std::string> task_type() const { return overrides_.task_type; }
  virtual std::optional<int> task_id() const { return overrides_.task_id; }
  virtual std::optional<std::string> rpc_layer() const { return overrides_.rpc_layer; }
  virtual std::string environment() const { return environment_; }  // "" or "google" in TensorFlow

  void set_task_type(std::optional<std::string> type) { overrides_.task_type = std::move(type); }
  void set_task_id(std::optional<int> id) { overrides_.task_id = id; }
  void set_rpc_layer(std::optional<std::string> layer) { overrides_.rpc_layer = std::move(layer); }
  // Full names of the devices that num_accelerators counts: "/job:worker/task:0/device:GPU:1". CPUs are left out.
  void set_visible_devices(std::vector<std::string> names) { visible_devices_ = std::move(names); }

 protected:
  explicit ClusterResolver(TaskQuery overrides = {}, std::string environment = "")
      : overrides_(std::move(overrides)), environment_(std::move(environment)) {}

  virtual std::string find_master(const TaskQuery& query) const = 0;
  virtual AcceleratorCounts count_accelerators(const TaskQuery& query) const;
  const TaskQuery& overrides() const { return overrides_; }

 private:
  TaskQuery overrides_;
  std::string environment_;
  std::vector<std::string> visible_devices_;
};

}  // namespace tandem
