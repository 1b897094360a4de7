// tf.distribute.ParameterServerStrategy of TensorFlow 2: one coordinator, the chief's program, creates the variables on
// the parameter servers and schedules functions on the workers' devices with a ClusterCoordinator. The programs of
// parameter servers return immediately, and so do those of workers unless they serve functions by name
// (worker_functions.h).
//
// Threads: the coordinator's own tasks, several at the same time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "strategies/servers/parameter_server.h"

namespace tandem {

class ParameterServerV2Extended final : public StoredExtended {
 public:
  ParameterServerV2Extended(Worker& chief, Partitioner partitioner,
                            std::shared_ptr<const ClusterResolver> cluster_resolver);

  // In a scheduled function those of the worker that it runs on, else the coordinator's own.
  const std::vector<Device*>& worker_devices() const override;
  int num_replicas_in_sync() const override { return static_cast<int>(replicas_per_worker()); }
  bool in_multi_worker_mode() const override { return true; }
  const ClusterResolver* cluster_resolver() const override { return cluster_resolver_.get(); }
  // Returns the staleness of the updates of all workers, including those issued in other processes.
  Staleness staleness() const override;
  // Adds the staleness of updates that a worker has issued in a process of its own.
  void add_staleness(const Staleness& staleness);
  const Partitioner& partitioner() const { return partitioner_; }

  int worker_count() const { return static_cast<int>(worker_devices_.size()); }
  const std::vector<Device*>& devices_of_worker(int worker) const {
    return worker_devices_.at(static_cast<std::size_t>(worker));
  }
  // The worker that the calling task computes on, or -1 for the coordinator itself.
  int assigned_worker() const;

  // Makes the calling task compute on `worker` for the lifetime of the object.
  class Assignment {
   public:
    Assignment(ParameterServerV2Extended& extended, int worker);
    ~Assignment();
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;

   private:
    ParameterServerV2Extended& extended_;
  };

  // Makes this the strategy of functions that a coordinator has run in the worker's process: those find the variables
  // of the coordinator's program and create none (ValueError).
  void serve_functions() { serves_functions_ = true; }
  // Where functions are served in a process of their own, returns the staleness of the updates since the last call. In
  // the coordinator's process it returns none: there the variables know.
  Staleness take_staleness();
  // Whether functions by name have been called on a worker, by its index in the run.
  void note_served(int worker);
  bool has_served(int worker) const;
  // Returns the variable of this shared name: that of this program or, where functions are served, one over the tensor
  // that the coordinator's program has made. NotFoundError where there is none.
  std::shared_ptr<Variable> shared_variable(const std::string& shared_name, const VariableSpec& spec);

 protected:
  void note_update(const Staleness& staleness) override;
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;
  // The input pipeline of the worker that the calling function was scheduled on. ValueError outside scheduled
  // functions, where no worker could use the data.
  InputWorkers input_workers() override;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override;
  Device& place(const VariableSpec& spec) override;
  // Publishes the tensor, for functions that workers run in their own processes (variables/published_tensors.h).
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override;
  std::size_t replicas_per_worker() const override { return worker_devices_.front().size(); }
  int current_worker() const override;

 private:
  Partitioner partitioner_;
  std::shared_ptr<const ClusterResolver> cluster_resolver_;
  RoundRobinPlacement next_task_;
  std::vector<std::vector<Device*>> worker_devices_;  // by worker, in task order
  bool serves_functions_ = false;
  std::map<const Task*, int> assigned_;
  std::map<std::string, std::weak_ptr<Variable>> shared_variables_;  // by shared name
  Staleness elsewhere_;  // of updates in other processes; where functions are served, of those to be reported
  std::set<int> served_;
  std::unique_ptr<Monitor> monitor_;  // guards the four above
  // Where functions are served in a process of their own, the coordinator's variables that were found; it costs
  // messages to find them again.
  std::vector<std::shared_ptr<Variable>> found_variables_;
};

// Variables go to the parameter servers in turn. As in TensorFlow 2, two variables of the same name are two variables;
// their names stay as they are.
class ParameterServerStrategyV2 final : public Strategy {
 public:
  // `chief` is the worker that runs this program. ValueError for a cluster that has jobs other than chief, worker, ps
  // and evaluator, more than one chief, no worker or no ps, and for a resolver or a TF_CONFIG that contradicts
  // the run (cluster/run_cluster.h). Without a partitioner variables are not sharded. cluster_resolver() returns the
  // resolver; by default one of TF_CONFIG, or of the run's cluster where TF_CONFIG describes none.
  explicit ParameterServerStrategyV2(Worker& chief, Partitioner partitioner = {},
                                     std::shared_ptr<const ClusterResolver> cluster_resolver = {});
  // Ends WorkerFunctions::serve() on all workers, if this strategy has had a coordinator, and waits until those that it
  // has called functions on by name are done.
  ~ParameterServerStrategyV2() override;  // ends the service of workers: serving_worker.cc
  void note_coordinator() { has_coordinator_ = true; }
  // Creates a variable in shards along axis 0, as the partitioner says; consecutive shards go to consecutive servers.
  ShardedVariable create_sharded_variable(const VariableSpec& spec);
  ParameterServerV2Extended& parameter_server_extended();
  // The worker that the calling function was scheduled on. RuntimeError outside functions that a ClusterCoordinator
  // runs.
  int scheduled_worker() const;
  // Returns how stale the updates of all workers were.
  Staleness staleness() const;

 private:
  std::atomic<bool> has_coordinator_ = false;
};

}  // namespace tandem
