// A model given as a table of layers, divided over a mesh of pipeline x data x tensor: the work of LayersWorkload in
// parts, with the exchange of activations and gradients that the division requires.
//
// Memory holds only parameters, gradients and shared operands; activations are not kept.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "scenarios/workloads/layer_stage.h"
#include "scenarios/workloads/workload.h"

namespace tandem {

class DividedLayersWorkload final : public Workload {
 public:
  DividedLayersWorkload(const LayersSettings& settings, Worker& worker, const ParallelOptions& options);

  void prepare() override;
  void run_step(int step) override;
  // Reports how many parameters the device with most of them has.
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return settings_.model.unit + "/s"; }

 private:
  // The work of one device in a step.
  struct Seat {
    Device* device = nullptr;
    std::vector<std::unique_ptr<LayerStage>> stages{};
    std::vector<StageChunk*> chunks{};  // the stages
    std::vector<PipelineAction> actions{};
    Tensor host_input{};            // of a replica's batch, where the first stage is
    std::array<Tensor, 2> input{};  // of this step and the next one
    std::array<Event, 2> input_ready{}, input_used{};
  };

  Seat make_seat(const MeshSeat& place);
  StageMemory memory_for(const Seat& seat) const;
  void make_input(Seat& seat) const;
  void fetch_input(Seat& seat, int step) const;
  void step(Seat& seat, int step) const;
  Tensor filled(Device& device, std::int64_t count, DType dtype) const;

  LayersSettings settings_;
  Worker& worker_;
  ParallelOptions options_;
  DType storage_;  // of activations; tf32 is stored as f32
  std::unique_ptr<MeshLayout> layout_;
  std::vector<Seat> seats_;  // one for each local device
};

}  // namespace tandem
