// How a model is trained, whatever divides it: element types, the optimizer, and when gradients are exchanged.
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/model/experts.h"
#include "strategies/model/offload.h"
#include "strategies/model/recomputation.h"
#include "topologies/base/dtype.h"

namespace tandem {

// Decides what an update reads and writes besides parameters and gradients: a momentum, or two moments.
enum class Optimizer : std::uint8_t { sgd, momentum, adam, lamb };

// Returns how many moments an optimizer keeps of each parameter.
constexpr int moments_of(Optimizer optimizer) {
  if (optimizer == Optimizer::sgd) return 0;
  return optimizer == Optimizer::momentum ? 1 : 2;
}

// The types in which moments are kept; empty: f32, or the type of the parameters where that is more precise.
struct MomentTypes {
  std::optional<DType> first{}, second{};

  // Returns the bytes of an optimizer's moments of one parameter, where one without a type has `usual` bytes.
  std::int64_t bytes(Optimizer optimizer, std::int64_t usual) const {
    const auto of = [usual](std::optional<DType> type) {
      return type ? static_cast<std::int64_t>(size_of(*type)) : usual;
    };
    const int count = moments_of(optimizer);
    return (count > 0 ? of(first) : 0) + (count > 1 ? of(second) : 0);
  }
};

// The types to which the operands of products with weights of repeated groups are quantised; their results, attention
// and the loss keep `dtype`. fp8: scales as the recipe says. mxfp8 and nvfp4: one for every 32 and every 16 elements.
enum class Quantised : std::uint8_t { none, fp8, mxfp8, nvfp4 };

// The scales of fp8. tensorwise: one for each tensor, from its largest element. delayed: the same, from those of
// earlier steps. rowwise: one for each row (column) over which a product sums. blockwise: one for every 128 elements of
// inputs and gradients over which a product sums, and one for each 128 x 128 weights.
enum class ScalingRecipe : std::uint8_t { tensorwise, delayed, rowwise, blockwise };

struct TrainingSettings {
  DType dtype = DType::f32;
  Quantised quantised = Quantised::none;
  ScalingRecipe recipe = ScalingRecipe::tensorwise;  // of fp8
  // Whether parameters of layers whose operands are quantised to a byte are gathered so, where devices
  // update or keep pieces of them.
  bool gathers_quantised = false;
  std::optional<DType> parameter_dtype{};  // of parameters and gradients; empty: dtype
  Optimizer optimizer = Optimizer::sgd;
  MomentTypes moments{};
  std::int64_t bucket_bytes = 25'000'000;  // gradients that are reduced together
  bool overlap = true;                     // reduce a bucket while the backward pass goes on
  bool overlap_tensor = true;              // sum gradients of inputs while those of weights are computed
  bool overlap_products = false;           // exchanges run beside the products that they feed or follow, part by part
  ExpertSettings experts{};
  bool sequence_parallel = false;       // tensor-parallel devices divide the rows of what they do not split
  int gradient_accumulation_steps = 1;  // passes over parts of the batch before gradients are reduced and applied
  RecomputedBlocks recomputed{};        // before their backward pass; single layers say it themselves
  Offload offload{};

  DType storage() const { return dtype == DType::tf32 ? DType::f32 : dtype; }  // of activations
  DType parameter_type() const { return parameter_dtype.value_or(storage()); }
  // The rate of quantised products.
  DType quantised_rate() const { return quantised == Quantised::nvfp4 ? DType::fp4 : DType::fp8; }
};

}  // namespace tandem
