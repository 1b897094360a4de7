// Data, context, tensor, expert and pipeline parallelism on a mesh of devices, as Megatron-LM divides models
// (arXiv:1909.08053, arXiv:2104.04473): the layers of a model say how each of them is split.
//
// A strategy of one's own may derive from it and change the order of the passes or the layers of the stages.
#pragma once

#include "strategies/parallel/division.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

class MeshDivision : public Division {
 public:
  std::optional<DivisionProblem> problem(const DivisionRequest& request) const override;
  std::vector<DeviceShare> shares(const DivisionRequest& request) const override;
  std::vector<std::int64_t> kind_of(int rank, const ParallelOptions& options) const override;
  int alike_neighbours(const DivisionRequest& request) const override;
  bool evaluates() const override { return true; }
  std::unique_ptr<DividedTraining> train(Worker& worker, TrainableModel& model,
                                         const ParallelOptions& options) const override;  // in mesh_training.cc

  // Returns the passes of a step on device `place` of a pipeline, in their order. Micro-batches go forward in the order
  // of their numbers through each stage, and backward likewise.
  virtual std::vector<PipelineAction> schedule(int place, const ParallelOptions& options) const;
  // Returns the first layer of each stage, followed by the number of layers.
  virtual std::vector<std::size_t> first_layers(const Model& model, const ParallelOptions& options) const;

 private:
  DeviceShare share(int place, const DivisionRequest& request) const;
};

}  // namespace tandem
