// A layer of a device that has all of it, so that nothing is exchanged around its computation.
#pragma once

#include "strategies/model/recomputation.h"
#include "strategies/parallel/stages/layer_exchanges.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

inline void compute_forward(StageModel& model, std::size_t layer, const Pass& pass, const LayerTensors& tensors) {
  for (const Work work : {Work::product, Work::operations}) model.launch(work, layer, pass, tensors);
}

inline void compute_again(StageModel& model, const Again& again, const Pass& pass, const LayerTensors& tensors) {
  if (again.with_product) model.launch(Work::product, again.layer, pass, tensors);
  model.launch(Work::operations, again.layer, pass, tensors);
}

inline void compute_gradients(StageModel& model, const std::vector<Layer>& layers, std::size_t layer, const Pass& pass,
                              const LayerTensors& tensors) {
  for (const Work work : {Work::operations_gradient, Work::product_again, Work::weight_gradient}) {
    model.launch(work, layer, pass, tensors);
  }
  if (has_parameters_before(layers, layer)) model.launch(Work::input_gradient, layer, pass, tensors);
}

}  // namespace tandem
