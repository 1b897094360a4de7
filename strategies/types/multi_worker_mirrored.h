// tf.distribute.MultiWorkerMirroredStrategy: replicas on the devices of several workers, in step. Every worker runs the
// same program; its replicas meet those of the others in collectives.
#pragma once

#include <memory>
#include <vector>

#include "strategies/base/communication_options.h"
#include "strategies/cluster/cluster_resolver.h"
#include "strategies/types/mirrored.h"

namespace tandem {

struct MultiWorkerOptions {
  Packing packing{};
  // A bytes_per_pack that is set overrides `packing`. A collective that not all workers join within timeout_seconds
  // ends the run with DeadlineExceededError.
  CommunicationOptions communication{};
  // Checked against the run (cluster/run_cluster.h), and what cluster_resolver() returns; by default one of TF_CONFIG,
  // or of the run's cluster where TF_CONFIG describes none.
  std::shared_ptr<const ClusterResolver> cluster_resolver{};
  // This worker's devices, which are then the only ones; by default all devices of all workers. Not with a resolver.
  std::vector<Device*> devices{};
};

class MultiWorkerMirroredExtended : public MirroredExtended {
 public:
  // All workers of the jobs "chief" and "worker" take part, the chief first. Throws ValueError unless all have equally
  // many devices and at most one is a chief, for options that name both a resolver and devices, and for a resolver or a
  // TF_CONFIG that contradicts the run.
  MultiWorkerMirroredExtended(Worker& worker, const MultiWorkerOptions& options);
  // Computes on `spec.devices` of this worker, which are part of `spec.group`. All workers in the group have equally
  // many devices. Without a resolver, cluster_resolver() returns one made of the run's cluster.
  MultiWorkerMirroredExtended(Worker& worker, const ReplicatedSpec& spec,
                              std::shared_ptr<const ClusterResolver> cluster_resolver = {});

  bool experimental_between_graph() const override { return true; }
  bool should_checkpoint() const override { return first_replica_id() == 0; }
  bool should_save_summary() const override { return first_replica_id() == 0; }
  bool in_multi_worker_mode() const override { return true; }
  const ClusterResolver* cluster_resolver() const override { return cluster_resolver_.get(); }

 protected:
  // Gives every worker the first one's initial values.
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override;

 private:
  std::shared_ptr<const ClusterResolver> cluster_resolver_;
  Communicator* in_sync_ = nullptr;  // of group(); null until used
};

class MultiWorkerMirroredStrategy final : public Strategy {
 public:
  // On the worker whose program the calling task runs (RuntimeError outside a program).
  explicit MultiWorkerMirroredStrategy(const MultiWorkerOptions& options = {});
  explicit MultiWorkerMirroredStrategy(Worker& worker, const MultiWorkerOptions& options = {});
};

// Returns the compute devices of the jobs that train: the chief's, then the workers' by task.
std::vector<DeviceId> devices_in_sync(Worker& worker);

}  // namespace tandem
