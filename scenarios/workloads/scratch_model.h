// A table of layers as pure work: its stages are ScratchStages, its batches have sizes only.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

class ScratchModel final : public TrainableModel {
 public:
  // `is_measured`: its time on GPUs depends on the values.
  ScratchModel(LayersSettings settings, bool is_measured) : settings_(std::move(settings)), is_measured_(is_measured) {}

  const Model& model() const override { return settings_.model; }
  const TrainingSettings& settings() const override { return settings_; }
  bool has_values() const override { return false; }
  std::vector<std::unique_ptr<StageModel>> make_stages(Device& device, Device& host,
                                                       std::span<const StagePart> parts) override;
  FirstValues first_values(std::size_t /*layer*/, const StagePart& /*part*/) const override { return {}; }
  std::vector<std::int64_t> kept_bytes(std::span<const Layer> layers, int row_parts, int expert_row_parts,
                                       int key_parts) const override;
  void make_batch(int /*step*/, Device& /*host*/) override {}
  // Returns the same tensor for a part in every step. Tasks of several devices call it, once each before the first step
  // for their part.
  Batch host_batch(const BatchPart& part, Device& host) override;

 private:
  LayersSettings settings_;
  bool is_measured_;
  std::map<std::tuple<std::int64_t, std::int64_t, int>, Batch> batches_;  // by part
};

}  // namespace tandem
