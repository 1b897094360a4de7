// The base of strategies that keep each variable in one place: parameter servers and central storage.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/types/replicated_extended.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {

// Keeps one stored tensor per variable, on a device that may belong to another worker. This worker updates it once per
// step with its replicas' combined values.
class StoredExtended : public ReplicatedExtended {
 public:
  // `in_sync`: the devices of all workers that are in step with this one, in replica order; empty: its own alone.
  StoredExtended(Worker& worker, std::vector<Device*> compute_devices, std::vector<Device*> parameter_devices,
                 std::vector<DeviceId> in_sync = {});

  const std::vector<Device*>& parameter_devices() const override { return parameter_devices_; }
  std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) override;
  std::string cross_device_ops_name() const override { return "parameter_server"; }
  // Returns the staleness of this worker's updates or, under a coordinator, of all workers' updates.
  virtual Staleness staleness() const { return staleness_of(worker().index()); }
  // Whether each worker updates the variables at its own pace.
  virtual bool updates_asynchronously() const { return in_multi_worker_mode(); }

 protected:
  // Called after every update of a variable by this strategy.
  virtual void note_update(const Staleness& /*staleness*/) {}
  Staleness staleness_of(std::optional<int> worker) const;
  // Returns the device for a new variable.
  virtual Device& place(const VariableSpec& spec) = 0;
  // Returns where a variable is stored: in a new tensor, or in the tensor of that name that all workers share.
  virtual std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) = 0;
  std::shared_ptr<StoredTensor> new_store(const VariableSpec& spec, Device& device) const;
  Tensor new_tensor(const VariableSpec& spec, Device& device) const;

  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;
  Value all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) override;
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override;
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override;

  // The index of the worker that the running task computes on.
  virtual int current_worker() const { return worker().index(); }
  // How many replicas of one worker use a variable.
  virtual std::size_t replicas_per_worker() const { return worker_devices().size(); }
  // Whether a change of a variable in a replica context combines those of several replicas.
  virtual bool aggregates() const { return replicas_per_worker() > 1; }

  // Sends a tensor to a device, on the server's stream of this worker. await() waits for the copy.
  Tensor sent(const Tensor& tensor, Device& device);
  void await(const Tensor& tensor);
  // Returns an argument of an update, on the device of the variable.
  Value arrived(const Value& argument, Device& device);

 private:
  struct Arrival {
    Tensor tensor;
    Event event;
    int sender = 0;  // the index of its worker
  };
  Value reduced_locally(ReduceOp op, const Value& value);

  std::vector<Device*> parameter_devices_;
  std::vector<Arrival> arrivals_;     // sent, and not waited for yet
  std::unique_ptr<Monitor> monitor_;  // guards arrivals_: tasks of several workers may use one strategy
};

// Returns the devices, or all of the worker's (all_devices_of) where none are given.
std::vector<Device*> or_all_of(Worker& worker, std::vector<Device*> devices);
// Returns where variables go without a parameter server: the only compute device, else the worker's CPU:0.
std::vector<Device*> local_parameter_device(Worker& worker, const std::vector<Device*>& compute);

}  // namespace tandem
