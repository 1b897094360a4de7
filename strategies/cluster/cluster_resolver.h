// tf.distribute.cluster_resolver: tells a process which cluster it is in and which task it is.
//
// There are TfConfigResolver, SimpleResolver, UnionResolver, SlurmResolver and SageMakerResolver. There are none for
// Google Compute Engine, Kubernetes and TPUs, which would have to ask a cloud's services; a program can derive one from
// ClusterResolver. See make_cluster_resolver (resolvers.h).
//
// Threads: const functions may be called from any thread while no thread calls a setter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

// Returns "grpc://host:port", or the bare address when the layer is empty.
std::string format_master_url(const std::string& address, const std::string& rpc_layer);

// Names a task; the resolver fills in what is missing.
struct TaskQuery {
  std::optional<std::string> task_type{};
  std::optional<int> task_id{};
  std::optional<std::string> rpc_layer{};
};

using AcceleratorCounts = std::map<std::string, int>;  // by device type, for example {"GPU": 8}

class ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  virtual ClusterSpec cluster_spec() const = 0;
  // Returns the address at which to open a session. ValueError for a task that the cluster does not have.
  std::string master(std::optional<std::string> task_type = {}, std::optional<int> task_id = {},
                     std::optional<std::string> rpc_layer = {}) const;
  // Counts the accelerators that a task can see. Devices are filtered by job and task when both are known.
  AcceleratorCounts num_accelerators(std::optional<std::string> task_type = {}, std::optional<int> task_id = {}) const;

  virtual std::optional<std::string> task_type() const { return overrides_.task_type; }
  virtual std::optional<int> task_id() const { return overrides_.task_id; }
  virtual std::optional<std::string> rpc_layer() const { return overrides_.rpc_layer; }
  virtual std::string environment() const { return environment_; }  // "" or "google" in TensorFlow

  void set_task_type(std::optional<std::string> type) { overrides_.task_type = std::move(type); }
  void set_task_id(std::optional<int> id) { overrides_.task_id = id; }
  void set_rpc_layer(std::optional<std::string> layer) { overrides_.rpc_layer = std::move(layer); }
  // Sets the devices that num_accelerators() counts, by full name: "/job:worker/task:0/device:GPU:1". CPUs do not
  // count.
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
