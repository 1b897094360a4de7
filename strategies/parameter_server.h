// tf.compat.v1's ParameterServerStrategy and tf.distribute's CentralStorageStrategy: variables in one place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/cluster/partitioners.h"
#include "strategies/cluster/placement.h"
#include "strategies/replicated_extended.h"
#include "strategies/variables/sharded_variable.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {

// What both share: one stored tensor a variable, on a device that may belong to another worker; one update a step of
// this worker, of its replicas' combined values.
class StoringExtended : public ReplicatedExtended {
 public:
  StoringExtended(Worker& worker, std::vector<Device*> compute_devices, std::vector<Device*> parameter_devices);

  const std::vector<Device*>& parameter_devices() const override { return parameter_devices_; }
  std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) override;
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;
  std::string cross_device_ops_name() const override { return "parameter_server"; }
  Value all_reduce(ReduceOp op, const Value& value) override;
  // Of this worker's updates of the strategy's variables; of all workers' where a coordinator has them made.
  virtual Staleness staleness() const { return staleness_of(worker().index()); }

 protected:
  Staleness staleness_of(std::optional<int> worker) const;
  // The device for a new variable.
  virtual Device& place(const VariableSpec& spec) = 0;
  // The stored tensor of a variable: of that name, shared by all workers, or new.
  virtual std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) = 0;
  std::shared_ptr<StoredTensor> new_store(const VariableSpec& spec, Device& device) const;

  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override;

  // The worker that the running task computes on.
  virtual int current_worker() const { return worker().index(); }
  // How many replicas of one worker use a variable.
  virtual std::size_t replicas_per_worker() const { return worker_devices().size(); }

 private:
  struct Arrival {
    Tensor tensor;
    Event event;
  };
  Value reduced_locally(ReduceOp op, const Value& value);
  Tensor sent(const Tensor& tensor, Device& device);
  Value arrived(const Value& argument, Device& device);
  void await(const Tensor& tensor);

  std::vector<Device*> parameter_devices_;
  std::vector<Arrival> arrivals_;     // sent, and not waited for yet
  std::unique_ptr<Monitor> monitor_;  // of arrivals_: tasks of several workers may use one strategy
};

// Variables on the tasks of the job "ps", which run no program of their own. Workers update them without waiting for
// each other; a worker's own replicas are in step. Without a ps job (one worker): on the only GPU, else on CPU:0.
enum class VariablePlacement : std::uint8_t { round_robin, by_size, by_hash };
VariablePlacement variable_placement_from_name(std::string_view name);  // "round_robin"; ValueError

struct ParameterServerOptions {
  VariablePlacement placement = VariablePlacement::round_robin;
  Partitioner partitioner{};  // for create_sharded_variable; empty: variables stay whole
};

class ParameterServerExtended final : public StoringExtended {
 public:
  ParameterServerExtended(Worker& worker, std::vector<Device*> compute_devices, ParameterServerOptions options);
  bool experimental_between_graph() const override { return true; }
  bool experimental_should_init() const override { return is_chief_; }
  bool should_checkpoint() const override { return is_chief_; }
  bool should_save_summary() const override { return is_chief_; }
  bool in_multi_worker_mode() const override { return has_servers_; }
  InputWorkers input_workers() override;
  const Partitioner& partitioner() const { return options_.partitioner; }

 protected:
  Device& place(const VariableSpec& spec) override;
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override;

 private:
  ParameterServerOptions options_;
  PlacementStrategy next_task_;
  bool has_servers_, is_chief_;
};

class ParameterServerStrategy final : public Strategy {
 public:
  // ValueError where the worker is a ps task itself: those call Server::join() or just return.
  explicit ParameterServerStrategy(Worker& worker, std::vector<Device*> devices = {},
                                   ParameterServerOptions options = {});
  // A variable in shards along axis 0, as the partitioner says, placed one after the other.
  ShardedVariable create_sharded_variable(const VariableSpec& spec);
  Staleness staleness() const;
};

// Replicas on all compute devices in step, variables on the parameter device: by default the only compute device, else
// CPU:0.
class CentralStorageStrategy final : public Strategy {
 public:
  explicit CentralStorageStrategy(Worker& worker, std::vector<Device*> compute_devices = {},
                                  Device* parameter_device = nullptr);
};

}  // namespace tandem
