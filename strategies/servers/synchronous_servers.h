// Parameter servers whose variables change once a step, by the sum over the replicas of all workers: TensorFlow's
// SyncReplicasOptimizer, `dist_sync` of MXNet.
//
// Every worker adds its gradients to accumulators on the servers. The last one to come applies the update, and each
// worker waits for it before it reads the variable again (update_rounds.h). All other values are combined over the
// workers as MultiWorkerMirrored does it. As there, every worker makes the same changes of the same variables in the
// same order, including those outside of steps, such as restoring a checkpoint; each is applied once. A value that is
// not reduced, such as one that is assigned, is the first worker's.
#pragma once

#include <memory>
#include <vector>

#include "strategies/servers/parameter_server.h"
#include "strategies/servers/update_rounds.h"

namespace tandem {

class SynchronousServersExtended final : public ParameterServerExtended {
 public:
  SynchronousServersExtended(Worker& worker, const std::vector<Device*>& compute_devices,
                             ParameterServerOptions options);

  bool updates_asynchronously() const override { return false; }
  // Send this worker's sums to the servers, where update() adds them to those of the other workers. IndexedSlices are
  // gathered from all workers instead.
  std::vector<Value> sum_for_updates(const std::vector<ReducePair>& pairs) override;
  ReductionInFlight begin_sum_for_updates(const std::vector<ReducePair>& pairs) override;

 protected:
  bool aggregates() const override { return num_replicas_in_sync() > 1; }
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override;
  Value all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) override;
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override;
  // Returns the function's result to the worker that applied the update, and nothing to the others.
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override;

 private:
  Tensor sum_of_worker(const Value& value);
  bool take_part(const Value& argument);

  std::unique_ptr<CrossDeviceOps> of_worker_;  // combine the values of this worker's devices
  std::shared_ptr<UpdateRounds> rounds_;       // shared by all strategies of this worker
  std::unique_ptr<Monitor> monitor_;           // guards parts_
  std::vector<Tensor> parts_;                  // of sums, sent to the servers and not yet given to update()
};

}  // namespace tandem
