// A multi-layer perceptron trained for real: ReLU layers, softmax cross entropy, SGD with momentum.
//
// The loss is the mean over the batch of all replicas in sync. Each replica divides its gradients by the size of that
// batch before they are summed, so that the number of replicas does not change what is learned.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scenarios/scenario/labelled_rows.h"
#include "scenarios/workloads/batch_share.h"
#include "scenarios/workloads/workload.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/variables/gradient_updates.h"

namespace tandem {

class MlpWorkload final : public Workload {
 public:
  MlpWorkload(const MlpSettings& settings, int global_batch, Strategy& strategy);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& report, bool carries_values) override;
  void add_to(Checkpoint& checkpoint) override;
  void pass_over(int steps) override;
  std::string throughput_unit() const override { return "examples/s"; }

 private:
  struct Layer {
    std::int64_t inputs = 0, outputs = 0;
    std::shared_ptr<Variable> weights, bias;
  };
  // The parameters as tensors, read once in a step because some strategies copy them from other devices.
  struct Parameters {
    Tensor weights, bias;
  };
  using Activations = std::vector<Tensor>;  // of every layer, the input first

  void create_layer(std::size_t index, std::int64_t inputs, std::int64_t outputs);
  void create_velocity(const std::shared_ptr<Variable>& variable);
  DistributedDataset distributed(const Dataset& batches);
  Value replica_step(const Tensor& inputs, const Tensor& labels);
  std::vector<Parameters> read_parameters() const;
  Activations forward(Device& device, const std::vector<Parameters>& parameters, const Tensor& inputs) const;
  std::vector<Tensor> backward(Device& device, const std::vector<Parameters>& parameters,
                               const Activations& activations, Tensor gradient) const;
  GradientUpdates::Variables variables_of_gradients() const;
  void update(Variable& variable, Tensor gradient) const;
  Tensor count_correct(const std::vector<Parameters>& parameters) const;
  double test_accuracy();

  MlpSettings settings_;
  int global_batch_;
  Strategy& strategy_;
  BatchShare share_;
  LabelledRows test_;
  std::vector<Layer> layers_;
  std::map<const Variable*, std::shared_ptr<Variable>> velocities_;  // with momentum
  GradientUpdates updates_;
  std::optional<DistributedIterator> iterator_;
  StepLosses losses_{[](const Tensor& loss) { return loss.values<float>()[0]; }};
};

}  // namespace tandem
