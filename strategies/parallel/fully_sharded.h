// Fully sharded data parallelism (ZeRO stage 3, PyTorch's FSDP): both the data and the parameters are divided among the
// devices; no device keeps all parameters.
//
// Each device computes its rows of the batch through all layers. A layer's parameters are gathered just before its
// forward and its backward pass, while the preceding layer computes. Its gradients are summed and scattered while those
// of the next layer are computed.
#pragma once

#include <memory>
#include <vector>

#include "strategies/parallel/device_mesh.h"
#include "strategies/parallel/sharded_parameters.h"
#include "strategies/parallel/trainer.h"

namespace tandem {

class FullyShardedTrainer final : public ParallelTrainer {
 public:
  FullyShardedTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options);

  Tensor train_step(const Tensor& inputs, const Tensor& labels) override;
  int replicas() const override { return mesh_.device_count(); }
  LinearTensors read_layer(int layer) override;

 private:
  struct Replica {
    Device* device = nullptr;
    Range rows{};  // which rows of the global batch it computes
    std::unique_ptr<ShardedParameters> parameters{};
    Tensor labels{}, loss{};
    std::vector<Tensor> activations{};       // the input, then every layer's output
    std::array<Tensor, 2> of_activations{};  // their gradients, used in turn; flat
  };

  Replica make_replica(std::size_t index);
  void step(const Replica& replica, const Tensor& inputs, const Tensor& labels) const;
  void fetch(const Replica& replica, const Tensor& inputs, const Tensor& labels) const;
  void forward(const Replica& replica) const;
  void backward(const Replica& replica) const;
  Tensor gradient_of(const Replica& replica, int activation) const;

  Worker& worker_;
  LinearStack stack_;
  std::int64_t batch_;
  DeviceMesh mesh_;
  GroupCollectives group_;
  std::vector<Replica> replicas_;  // this worker's
};

}  // namespace tandem
