// What a device holds of activations in the course of a step: pass by pass, layer by layer. Of two passes that take
// turns, the backward pass gives memory back while the forward pass fills it.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/workloads/activations.h"
#include "strategies/parallel/division.h"
#include "strategies/parallel/layout/pipeline_schedule.h"

namespace tandem {

// The work on one layer in one pass.
struct StepMoment {
  PipelineAction action{};
  std::size_t layer = 0;  // of the stage that is the action's chunk
  std::int64_t activations = 0, workspace = 0;

  std::int64_t bytes() const { return activations + workspace; }
};

class StepMemory {
 public:
  // Needs a share with a stage.
  StepMemory(const DeviceShare& share, const ActivationSettings& settings);

  // Returns all moments, in their order.
  std::vector<StepMoment> moments() const;
  // Returns the one with most bytes, the first of them.
  StepMoment peak() const;

 private:
  template <typename Alone, typename Pair>
  void visit_passes(const Alone& alone, const Pair& pair) const;
  template <typename Visit>
  void visit_turns(const PipelineAction& there, const PipelineAction& back, const Visit& visit) const;
  StepMoment largest_of_turns(const PipelineAction& there, const PipelineAction& back) const;
  std::int64_t taken_up(const PipelineAction& action) const;
  std::int64_t left_behind(const PipelineAction& action) const;
  std::int64_t kept_by_first(std::size_t layers, const PipelineAction& action) const;
  StepMoment moment(const PipelineAction& action, std::size_t layer, std::int64_t others) const;
  std::size_t largest_of(const PipelineAction& action) const;

  std::vector<PipelineAction> actions_;
  std::vector<PassMemory> passes_;                               // by chunk
  std::vector<std::vector<std::size_t>> turns_;                  // by chunk: the layer at which each turn ends
  std::vector<std::size_t> largest_forward_, largest_backward_;  // layers, by chunk
};

// "the backward pass of micro-batch 3, block.0.output"; "the backward pass, head" where there is one micro-batch.
std::string moment_text(const StepMoment& moment, const DeviceShare& share);

}  // namespace tandem
