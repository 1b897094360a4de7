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
#include "scenarios/workloads/mlp_evaluation.h"
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
  Tensor evaluate() override;
  std::int64_t evaluated_examples() const override { return evaluated_->examples(); }
  std::vector<Tensor> variables() override;

 private:
  struct Layer {
    std::int64_t inputs = 0, outputs = 0;
    std::shared_ptr<Variable> weights, bias;
  };
  using Activations = std::vector<Tensor>;  // of every layer, the input first

  void create_layer(std::size_t index, std::int64_t inputs, std::int64_t outputs);
  void create_velocity(const std::shared_ptr<Variable>& variable);
  DistributedDataset distributed(const Dataset& batches);
  Value replica_step(const Tensor& inputs, const Tensor& labels);
  std::vector<MlpParameters> read_parameters() const;
  std::vector<Tensor> backward(Device& device, const std::vector<MlpParameters>& parameters,
                               const Activations& activations, Tensor gradient) const;
  GradientUpdates::Variables variables_of_gradients() const;
  void update(Variable& variable, Tensor gradient) const;
  Tensor count_correct(const std::vector<MlpParameters>& parameters) const;
  double test_accuracy();

  MlpSettings settings_;
  int global_batch_;
  Strategy& strategy_;
  BatchShare share_;
  LabelledRows test_;
  std::optional<MlpEvaluation> evaluated_{};
  std::vector<Layer> layers_;
  std::map<const Variable*, std::shared_ptr<Variable>> velocities_;  // with momentum
  GradientUpdates updates_;
  std::optional<DistributedIterator> iterator_;
  StepLosses losses_{[](const Tensor& loss) { return loss.values<float>()[0]; }};
};

}  // namespace tandem
