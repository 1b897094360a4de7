// One stage of a stack of linear layers on one device of a mesh: some layers (pipeline parallelism), the device's part
// of each of them (tensor parallelism), on its rows of the batch (data parallelism), one micro-batch after another.
//
// Threads: one task per step and device. The devices of a group call the same collectives in the same order.
#pragma once

#include <array>
#include <vector>

#include "strategies/parallel/mesh_layout.h"
#include "strategies/parallel/stage_channels.h"
#include "strategies/parallel/tensor_shards.h"

namespace tandem {

class MeshStage final : public StageChunk {
 public:
  // `layers` are this stage's, number `stage` of the pipeline. `host` is the worker's CPU, on which initial values are
  // computed. `live`: how many micro-batches are between their two passes at the same time.
  MeshStage(const MeshSeat& seat, Device& host, const LinearStack& stack, const ParallelOptions& options, int stage,
            Range layers, int live);

  // Brings the seat's rows of the batch to the device, where the stage needs any. Called before the passes of a step.
  void fetch(const Tensor& inputs, const Tensor& labels);
  void forward(int micro_batch) override;
  void backward(int micro_batch) override;
  void update();  // called after the passes

  Device& device() const { return device_; }
  const MeshPlace& place() const { return place_; }
  bool is_last() const { return stage_ + 1 == options_.stages(); }
  const Tensor& losses() const { return losses_; }  // in the last stage: each micro-batch's part of the loss
  bool has_layer(int layer) const {
    return layers_.front().shard.layer <= layer && layer <= layers_.back().shard.layer;
  }
  const LayerShard& shard(int layer) const { return at(layer).shard; }
  LinearTensors parameters(int layer) const { return linear_views(at(layer).parameters, at(layer).shard.shape()); }

 private:
  struct Layer {
    LayerShard shard{};
    Tensor parameters{}, gradients{}, velocity{};
    Event reduced{};  // when the gradients have been summed over the data-parallel devices
  };

  bool is_first() const { return stage_ == 0; }
  const Layer& at(int layer) const { return layers_.at(static_cast<std::size_t>(layer - layers_.front().shard.layer)); }
  Stream& compute() const { return device_.compute_stream(); }
  Range micro_batch(int index) const { return part_of(rows_.count, options_.micro_batches, index); }
  Tensor filled(std::int64_t count) const;
  void make_layer(Device& host, const LinearStack& stack, int layer);
  void make_activations(const LinearStack& stack);
  void loss(int micro_batch, const Tensor& logits);
  Tensor output_of(int micro_batch, std::size_t layer);
  void layer_backward(std::size_t layer, int micro_batch, const Tensor& of_output, const Tensor& of_input);
  Event sum_input_gradient(const Layer& layer, const Tensor& of_input);
  Tensor input_gradient_of(std::size_t layer, std::int64_t rows);

  Device& device_;
  ParallelOptions options_;
  SgdSettings sgd_;
  int last_layer_;  // of the stack, not of the stage
  int stage_;
  MeshPlace place_;
  MeshGroups groups_;
  Range rows_;  // which rows of the global batch it computes
  std::vector<Layer> layers_;

  Tensor whole_inputs_, inputs_, labels_, losses_;  // in the first and the last stage
  std::vector<Tensor> stage_inputs_;                // by micro-batch
  std::vector<std::vector<Tensor>> outputs_;        // by live micro-batch and layer; flat
  Tensor logits_gradient_, bias_scratch_;
  std::array<Tensor, 2> of_activations_;  // gradients within the stage, used in turn; flat
  StageChannels channels_;
};

}  // namespace tandem
