// tf.compat.v1.distribute.experimental.ParameterServerStrategy: variables on parameter servers, which the workers
// update without waiting for each other, or all together (VariableUpdates, synchronous_servers.h).
//
// Every worker runs the program and makes its own strategy object. Workers share a variable when they give it the same
// name, so all of them must create the same variables in the same order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/cluster/cluster_resolver.h"
#include "strategies/cluster/partitioners.h"
#include "strategies/cluster/placement.h"
#include "strategies/types/stored_extended.h"
#include "strategies/variables/sharded_variable.h"

namespace tandem {

struct ParameterServerOptions {
  VariablePlacement placement = VariablePlacement::round_robin;
  VariableUpdates updates = VariableUpdates::asynchronous;
  Partitioner partitioner{};  // used by create_sharded_variable; empty: variables are not sharded
  // Checked against the run (cluster/run_cluster.h), and what cluster_resolver() returns; by default one of TF_CONFIG,
  // or of the run's cluster where TF_CONFIG describes none.
  std::shared_ptr<const ClusterResolver> cluster_resolver{};
};

class ParameterServerExtended : public StoredExtended {
 public:
  // `in_sync`: see StoredExtended.
  ParameterServerExtended(Worker& worker, const std::vector<Device*>& compute_devices, ParameterServerOptions options,
                          std::vector<DeviceId> in_sync = {});
  ~ParameterServerExtended() override;

  bool experimental_between_graph() const override { return true; }
  bool experimental_should_init() const override { return is_chief_; }
  bool should_checkpoint() const override { return is_chief_; }
  bool should_save_summary() const override { return is_chief_; }
  bool in_multi_worker_mode() const override { return has_servers_; }
  const ClusterResolver* cluster_resolver() const override { return options_.cluster_resolver.get(); }
  const Partitioner& partitioner() const { return options_.partitioner; }

 protected:
  InputWorkers input_workers() override;
  // Makes the name unique among all variables of this worker, as a TensorFlow graph does: the second "v" becomes "v_1".
  // ValueError when another worker has created a variable of that name with another shape or type or on another server.
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;
  Device& place(const VariableSpec& spec) override;
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override;

 private:
  class VariableNames;

  ParameterServerOptions options_;
  PlacementStrategy next_task_;
  bool has_servers_, is_chief_;
  std::shared_ptr<VariableNames> names_;  // shared by all strategies of this worker that use parameter servers
};

// Makes the implementation for these updates (synchronous_servers.cc).
std::unique_ptr<ParameterServerExtended> make_parameter_servers(Worker& worker, const std::vector<Device*>& devices,
                                                                ParameterServerOptions options);

// Keeps variables on the tasks of the job "ps", which run no program of their own. The replicas of one worker are in
// step, and with synchronous updates those of all workers. A cluster without a ps job must have a single worker; its
// variables are on its only compute device, or on CPU:0 when it computes on several.
class ParameterServerStrategy final : public Strategy {
 public:
  // On the worker whose program the calling task runs (RuntimeError outside a program).
  explicit ParameterServerStrategy(ParameterServerOptions options = {});
  // Computes on `devices`, by default on all of the worker's. ValueError when `worker` is a ps task, which calls
  // Server::join() or just returns, for a resolver or a TF_CONFIG that contradicts the run, and for synchronous updates
  // of several workers that do not all compute on as many devices, and on all of theirs.
  explicit ParameterServerStrategy(Worker& worker, std::vector<Device*> devices = {},
                                   ParameterServerOptions options = {});
  // Creates a variable in shards along axis 0, as the partitioner says; consecutive shards go to consecutive servers.
  ShardedVariable create_sharded_variable(const VariableSpec& spec);
  // Returns how stale this worker's updates were.
  Staleness staleness() const;
};

}  // namespace tandem
