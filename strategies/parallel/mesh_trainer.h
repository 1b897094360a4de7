// Data, tensor and pipeline parallelism of a stack of linear layers on a mesh of devices. An axis of size 1 switches
// its kind of parallelism off.
#pragma once

#include <memory>
#include <vector>

#include "strategies/parallel/mesh_layout.h"
#include "strategies/parallel/mesh_stage.h"

namespace tandem {

// Returns whether a stage receives a matrix that all of its tensor-parallel devices need, so that
// ParallelOptions::scatter_gather decides how.
bool sends_whole_matrices(const LinearStack& stack, const ParallelOptions& options);

class MeshTrainer final : public ParallelTrainer {
 public:
  MeshTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options);

  Tensor train_step(const Tensor& inputs, const Tensor& labels) override;
  int replicas() const override { return options_.data; }
  LinearTensors read_layer(int layer) override;

 private:
  // What one device does in a step.
  struct Seat {
    std::vector<std::unique_ptr<MeshStage>> stages{};
    std::vector<StageChunk*> chunks{};  // the stages
    std::vector<PipelineAction> actions{};
    std::int64_t losses_at = -1;  // where the losses of its last stage go; -1: it has none
  };

  Seat make_seat(const MeshSeat& place, const std::vector<int>& first_layers);
  void step(const Seat& seat, const Tensor& inputs, const Tensor& labels, const Tensor& losses) const;

  Worker& worker_;
  LinearStack stack_;
  ParallelOptions options_;
  MeshLayout layout_;
  std::vector<Seat> seats_;  // one for each local device
  std::int64_t losses_ = 0;
};

}  // namespace tandem
