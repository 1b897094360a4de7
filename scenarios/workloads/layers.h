// A model given as a table of layers: the matrix products and element-wise work of every layer with the model's shapes,
// on scratch memory, and gradients that are reduced in buckets while the backward pass goes on.
//
// The backward pass of a product is two more products: the gradients of its weights and of its input (not for the first
// layer). Values mean nothing; times, sizes and collectives are those of the model. Layers whose gradients are reduced
// together keep their parameters in one variable, which is read before the first of these layers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/workloads/workload.h"
#include "strategies/parallel/layout/range.h"
#include "strategies/parallel/stages/step_input.h"
#include "strategies/parallel/stages/trainable_model.h"
#include "strategies/variables/gradient_updates.h"

namespace tandem {

class LayersWorkload final : public Workload {
 public:
  LayersWorkload(std::unique_ptr<TrainableModel> model, bool variables_are_tensors, int global_batch,
                 Strategy& strategy);

  void prepare() override;
  void run_step(int step) override;
  // Reports the losses, where values mean something.
  void finish(Report& report, bool carries_values) override;
  void add_to(Checkpoint& checkpoint) override;
  void pass_over(int steps) override;
  std::string throughput_unit() const override { return model_->model().unit + "/s"; }
  Tensor evaluate() override;
  std::vector<Tensor> variables() override;

 private:
  // One replica on one device.
  struct Replica {
    BatchPart batch{};
    std::vector<Pass> passes{};
    std::unique_ptr<StageModel> computation{};
    Tensor gradients{};            // all parameters, in the order of the backward pass
    std::vector<Tensor> values{};  // of the buckets' parameters in this step; empty where values mean nothing
    std::optional<StepInput> input{};
    // Evaluations by the workers that train.
    BatchPart evaluated{};
    std::optional<StepInput> evaluation_input{};
    int evaluation_passes = 0;  // done so far
  };
  // The gradients of consecutive layers that are reduced together.
  struct Bucket {
    std::int64_t first = 0, count = 0;  // of the gradients
    std::size_t first_layer = 0;        // in forward order, of those with parameters
    std::shared_ptr<Variable> parameters{};
    std::vector<std::shared_ptr<Variable>> moments{};
    std::int64_t end() const { return first + count; }
  };

  const std::vector<Layer>& layers() const { return model_->model().layers; }
  Replica make_replica(Device& device, const Range& rows, const Range& evaluated);
  Value evaluate_on(Replica& replica) const;
  Device& host() const;
  void divide_into_buckets();
  std::int64_t parameters() const;
  FirstValues first_values(const Bucket& bucket) const;
  void create_variables();
  void create_moments(Bucket& bucket);
  Value replica_step(Replica& replica, int step);
  Tensor losses_of(const Replica& replica) const;
  LayerTensors tensors(const Replica& replica, std::size_t layer) const;
  std::size_t bucket_of(std::int64_t parameter) const;
  std::vector<Pass> passes_of(const Range& rows) const;
  void forward(Replica& replica, const Pass& pass) const;
  void backward(Replica& replica, const Pass& pass);
  void layer_backward(const Replica& replica, const Pass& pass, std::size_t layer) const;
  void update(Variable& variable, const Tensor& gradient) const;

  std::unique_ptr<TrainableModel> model_;
  const TrainingSettings& settings_;
  Recomputation recomputation_;
  bool variables_are_tensors_;
  int global_batch_;
  Strategy& strategy_;
  std::vector<Bucket> buckets_;                // in the order of the backward pass
  std::vector<std::int64_t> first_gradients_;  // of each layer
  GradientUpdates updates_;
  std::vector<Replica> replicas_;
  std::int64_t step_ = 0;
  StepLosses losses_{sum_of_elements};
};

}  // namespace tandem
