// Fully sharded data parallelism (ZeRO stage 3, PyTorch's FSDP): both the data and the parameters are divided among the
// devices; no device keeps all parameters.
//
// Each device computes its rows of the batch through all layers. The parameters of consecutive layers, which have at
// least bucket_bytes together, are gathered just before their forward and their backward pass, while the preceding ones
// compute. Their gradients are summed and scattered while the next ones are computed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategies/parallel/divided_training.h"
#include "strategies/parallel/layout/device_mesh.h"
#include "strategies/parallel/sharded_parameters.h"
#include "strategies/parallel/stages/step_input.h"

namespace tandem {

class ShardedTraining final : public DividedTraining {
 public:
  ShardedTraining(Worker& worker, TrainableModel& model, const ParallelOptions& options);

  void run_step(int step) override;
  void evaluate(int step, int passes) override;
  int replicas() const override { return options_.data; }
  std::int64_t most_parameters() const override;
  LinearTensors read_layer(std::size_t layer) override;

 private:
  // The place of a layer's parameters.
  struct Place {
    int unit = 0;
    std::int64_t first = 0;
  };
  struct Replica {
    Device* device = nullptr;
    BatchPart batch{};
    std::unique_ptr<ShardedParameters> parameters{};
    std::unique_ptr<StageModel> computation{};
    std::optional<StepInput> input{};
  };

  const std::vector<Layer>& layers() const { return model_.model().layers; }
  void divide_into_units();
  void set_first_values(int unit);
  Replica make_replica(std::size_t index);
  StagePart part(std::int64_t examples) const;
  Pass pass(const Replica& replica, int index) const;
  void step(Replica& replica, int step);
  void forward(const Replica& replica, const Pass& pass) const;
  void backward(const Replica& replica, const Pass& pass) const;
  void layer_backward(const Replica& replica, Pass pass, std::size_t layer, const Tensor& unit,
                      const Tensor& gradients) const;
  LayerTensors tensors(const Replica& replica, std::size_t layer, const Tensor& unit, const Tensor& gradients) const;
  std::size_t table() const;  // the layer whose weights others share

  Worker& worker_;
  TrainableModel& model_;
  const TrainingSettings& settings_;
  ParallelOptions options_;
  Recomputation recomputation_;
  std::vector<Place> places_;  // of each layer
  std::vector<ShardedParameters::Unit> units_;
  int shared_unit_ = -1;  // the unit of the table, where other layers share its weights; -1: none
  DeviceMesh mesh_;
  GroupCollectives group_;
  std::vector<Replica> replicas_;
};

}  // namespace tandem
