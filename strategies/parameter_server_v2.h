// tf.distribute.ParameterServerStrategy of TensorFlow 2: one coordinator (the chief's program) keeps the variables on
// parameter servers and has its functions run on the workers' devices. The programs of workers and parameter servers
// just return; see ClusterCoordinator.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "strategies/parameter_server.h"

namespace tandem {

class ParameterServerV2Extended final : public StoredExtended {
 public:
  ParameterServerV2Extended(Worker& chief, Partitioner partitioner);

  int num_replicas_in_sync() const override { return static_cast<int>(replicas_per_worker()); }
  bool in_multi_worker_mode() const override { return true; }
  Staleness staleness() const override { return staleness_of(std::nullopt); }
  const Partitioner& partitioner() const { return partitioner_; }

  int worker_count() const { return static_cast<int>(worker_devices_.size()); }
  const std::vector<Device*>& devices_of_worker(int worker) const {
    return worker_devices_.at(static_cast<std::size_t>(worker));
  }
  // Which of the workers the running task computes on, or -1 for the coordinator itself.
  int assigned_worker() const;

  // The running task computes on that worker for the life of the object.
  class Assignment {
   public:
    Assignment(ParameterServerV2Extended& extended, int worker);
    ~Assignment();
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;

   private:
    ParameterServerV2Extended& extended_;
  };

 protected:
  // ValueError outside a function of the coordinator: there is no worker that could use the data.
  InputWorkers input_workers() override;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override;
  Device& place(const VariableSpec& spec) override;
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override {
    return new_store(spec, device);
  }
  std::size_t replicas_per_worker() const override { return worker_devices_.front().size(); }
  int current_worker() const override;

 private:
  Partitioner partitioner_;
  RoundRobinPlacement next_task_;
  std::vector<std::vector<Device*>> worker_devices_;  // by worker, in task order
  std::map<const Task*, int> assigned_;
  std::unique_ptr<Monitor> monitor_;  // of assigned_
};

class ParameterServerStrategyV2 final : public Strategy {
 public:
  // `chief` runs this program. ValueError for a cluster with other jobs than chief, worker, ps and evaluator, several
  // chiefs, or without a worker or ps. An empty partitioner leaves variables whole.
  explicit ParameterServerStrategyV2(Worker& chief, Partitioner partitioner = {});
  ShardedVariable create_sharded_variable(const VariableSpec& spec);
  ParameterServerV2Extended& parameter_server_extended();
  Staleness staleness() const;
};

}  // namespace tandem
