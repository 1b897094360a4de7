// A multi-layer perceptron trained for real: ReLU layers, softmax cross entropy, SGD with momentum.
//
// The loss is the mean over the global batch, and gradients are scaled by it before they are summed over the replicas,
// so that the number of replicas does not change what is learned.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/labelled_rows.h"
#include "scenarios/workloads/workload.h"
#include "strategies/distributed_dataset.h"

namespace tandem {

class MlpWorkload final : public Workload {
 public:
  MlpWorkload(const MlpSettings& settings, int global_batch, Strategy& strategy);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return "examples/s"; }

 private:
  struct Layer {
    std::int64_t inputs = 0, outputs = 0;
    std::shared_ptr<Variable> weights, bias;
    std::shared_ptr<Variable> weights_velocity, bias_velocity;  // with momentum
  };
  struct Activations {
    std::vector<Tensor> outputs;  // of every layer, the input first
  };

  void create_layer(std::size_t index, std::int64_t inputs, std::int64_t outputs);
  std::shared_ptr<Variable> create_velocity(const Variable& variable);
  Value replica_step(const Tensor& inputs, const Tensor& labels);
  Activations forward(Device& device, const Tensor& inputs) const;
  std::vector<Tensor> backward(Device& device, const Activations& activations, Tensor gradient) const;
  void update(Device& device, const std::vector<Tensor>& gradients) const;
  double test_accuracy();

  MlpSettings settings_;
  int global_batch_;
  Strategy& strategy_;
  LabelledRows test_;
  std::vector<Layer> layers_;
  std::optional<DistributedIterator> iterator_;
  std::vector<Tensor> losses_;  // one a step, on the host's device
};

}  // namespace tandem
