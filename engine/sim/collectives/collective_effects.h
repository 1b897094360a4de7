// Applies a collective to the memory of its devices, in runs that carry values. Reductions add in rank order.
#pragma once

#include <span>

#include "engine/collective.h"
#include "engine/tensor.h"

namespace tandem::sim {

// Tensors are by rank; inputs are the outputs where the collective works in place.
void apply_effects(const CollectiveSpec& spec, std::span<const Tensor> outputs, std::span<const Tensor> inputs);

}  // namespace tandem::sim
