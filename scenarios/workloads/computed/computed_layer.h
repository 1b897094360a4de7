// One layer of a computed stage.
#pragma once

#include "scenarios/workloads/computed/stage_state.h"

namespace tandem {

class ComputedLayer {
 public:
  virtual ~ComputedLayer() = default;
  virtual void launch(Work work, const Pass& pass, const LayerTensors& tensors) = 0;
  virtual Exchanged operands(Exchange exchange, const Pass& pass) = 0;
};

}  // namespace tandem
