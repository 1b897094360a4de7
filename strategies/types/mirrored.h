// tf.distribute.MirroredStrategy: replicas on the devices of one worker, in step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strategies/types/replicated_extended.h"

namespace tandem {

// One replica on each of the worker's devices; variables are mirrored on all of them. Made to be derived from.
class MirroredExtended : public ReplicatedExtended {
 public:
  using ReplicatedExtended::ReplicatedExtended;

 protected:
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;
  // Throws AssertionError for a variable of another strategy, which has no components here.
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override;
};

class MirroredStrategy final : public Strategy {
 public:
  // On the worker whose program the calling task runs (RuntimeError outside a program): on all its compute devices, or
  // on its CPU where it has none.
  MirroredStrategy();
  // On those of `worker`.
  explicit MirroredStrategy(Worker& worker);
  // `devices` are this worker's, at least one (ValueError). `cross_device_ops`: see make_cross_device_ops.
  MirroredStrategy(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops = "auto",
                   Packing packing = {});
  // Uses the given operations, which must be for the same devices (ValueError). Null means "auto".
  MirroredStrategy(Worker& worker, std::vector<Device*> devices, std::shared_ptr<CrossDeviceOps> cross_device_ops);
};

// Returns this worker's devices of these names, in order, as tf.distribute.MirroredStrategy takes them: "GPU:0",
// "/job:worker/task:0/device:GPU:0". Throws ValueError for a name of no device here, for local names beside those of a
// job, for a job without a task and for workers with different numbers of devices, and RuntimeError for several
// workers, whose strategy is MultiWorkerMirroredStrategy.
std::vector<Device*> mirrored_devices(Worker& worker, const std::vector<std::string>& names);

}  // namespace tandem
