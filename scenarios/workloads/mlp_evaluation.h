// The forward pass of a multi-layer perceptron, and its evaluation on rows that are set apart.
//
// Threads: an MlpEvaluation may be used by the tasks of several devices.
#pragma once

#include <span>
#include <vector>

#include "engine/device.h"
#include "scenarios/scenario/evaluation_settings.h"
#include "scenarios/scenario/labelled_rows.h"

namespace tandem {

// The parameters of a layer as tensors.
struct MlpParameters {
  Tensor weights, bias;
};

// Issues the forward pass. Returns the activations of every layer, the input first; the last ones are logits.
std::vector<Tensor> mlp_forward(Device& device, std::span<const MlpParameters> parameters, const Tensor& inputs);

class MlpEvaluation {
 public:
  MlpEvaluation(LabelledRows rows, const EvaluationSettings& settings) : rows_(std::move(rows)), settings_(settings) {}

  // Issues the passes over one of the parts into which devices divide each batch. Returns the part's EvaluationSums,
  // on the device. `host` is the worker's CPU.
  Tensor run(Device& device, Device& host, std::span<const MlpParameters> parameters, int part, int parts) const;
  // Returns how many rows an evaluation has.
  std::int64_t examples() const;

 private:
  struct Rows {
    Tensor values, labels;  // on the device
  };
  Rows rows_on(Device& device, Device& host, std::int64_t first, std::int64_t count) const;

  LabelledRows rows_;
  EvaluationSettings settings_;
};

}  // namespace tandem
