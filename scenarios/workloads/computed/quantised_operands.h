// The operands of a dense layer's products as numbers of eight or four bits have them, with their scales. They are
// rounded before each product, which is then computed in f32.
#pragma once

#include <array>
#include <vector>

#include "scenarios/workloads/computed/stage_state.h"

namespace tandem {

class QuantisedOperands {
 public:
  // For a layer of the stage. Nothing is rounded where the training quantises nothing, or not this layer.
  QuantisedOperands(StageState& state, std::size_t layer);

  enum class Operand : std::uint8_t { input, weights, gradient };
  // Over what of the matrix, as it lies in memory, the product sums.
  enum class Summed : std::uint8_t { rows, columns };
  // Launches what rounds a matrix, or a matrix for each expert, and returns the result: valid for products launched
  // before the next call for the same kind of operand, of any layer. Where nothing is rounded, it is the matrix itself.
  Tensor rounded(Operand operand, const Tensor& matrix, Summed summed);

 private:
  // The largest magnitudes of an operand: that of the tensor, or those of earlier steps.
  struct Maxima {
    Tensor now{}, history{};
    int step = -1;  // in which `now` was made of the history
  };
  Tensor maximum_of(Maxima& maxima, const Tensor& matrix);
  Tensor delayed_maximum(Maxima& maxima, const Tensor& matrix);

  StageState& state_;
  bool is_quantised_;
  std::array<std::vector<Maxima>, 3> maxima_{};  // by operand and expert, where scales are those of tensors
  Name rounding_, maximum_;
};

// Returns the side of the blocks that must divide both sides of weights where values are quantised: 1 if any does.
std::int64_t dividing_block(Quantised quantised);

}  // namespace tandem
