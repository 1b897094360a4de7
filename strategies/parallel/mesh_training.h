// Trains a model that is divided over a mesh of pipeline x data x context x tensor. An axis of size 1 switches its kind
// of parallelism off.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategies/parallel/mesh_division.h"
#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/step_input.h"

namespace tandem {

class MeshTraining final : public DividedTraining {
 public:
  // `division` says the order of the passes and the layers of the stages.
  MeshTraining(Worker& worker, TrainableModel& model, const ParallelOptions& options, const MeshDivision& division);

  void run_step(int step) override;
  void evaluate(int step, int passes) override;
  int replicas() const override { return options_.data; }
  std::int64_t most_parameters() const override;
  LinearTensors read_layer(std::size_t layer) override;

 private:
  // What one device does in a step.
  struct DeviceStep {
    std::vector<std::unique_ptr<Stage>> stages{};  // by chunk
    std::vector<Stage*> in_order{};                // the same, as the pipeline numbers them
    std::vector<PipelineAction> actions{};
    Device* device = nullptr;
    BatchPart batch{};
    std::optional<StepInput> input{};  // where a stage needs any
    std::int64_t losses_at = -1;       // where the losses of its last stage go; -1: it has none
  };

  DeviceStep make_step(const MeshMember& place);
  void join_stages(const DeviceStep& local, bool shares_weights) const;
  void make_input(DeviceStep& local, const MeshPlace& place);
  void step(DeviceStep& local, int step, const Tensor& losses);
  void run_passes(DeviceStep& local);
  void evaluate(DeviceStep& local, int step);

  Worker& worker_;
  TrainableModel& model_;
  ParallelOptions options_;
  const MeshDivision& division_;
  MeshLayout layout_;
  std::vector<std::size_t> first_layers_;  // of the stages, followed by the number of layers
  std::vector<DeviceStep> steps_;          // one for each local device that runs
  std::int64_t losses_of_step_ = 0;
};

}  // namespace tandem
