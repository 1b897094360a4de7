// What the devices of a mesh exchange for one layer in one pass. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/parallel/layout/layer_division.h"

namespace tandem {

// In elements; 0: nothing is exchanged.
struct LayerExchanges {
  std::int64_t summed_output = 0, summed_gradient = 0;  // by the tensor-parallel devices
  std::int64_t loss_rows = 0;                           // rows whose maxima and sums they exchange
  // With sequence parallelism: the input, gathered forward and again backward, and the gradient of the output. That is
  // gathered after the gradients of what follows the sum, which is done to the device's rows only.
  std::int64_t gathered_input = 0, gathered_again = 0, gathered_gradient = 0;
  // Keys or values that a sequence's devices exchange: of all of them; where they exchange heads, those of one device,
  // as are the queries and the results of attention, which are then exchanged, too.
  std::int64_t keys = 0, queries = 0, results = 0;
  std::int64_t dispatched = 0, combined = 0;  // tokens that go to the devices with the experts, and back
  bool with_input_gradient = true;            // false: nothing learns before the layer

  // Returns the largest of these exchanges, except that of the loss.
  std::int64_t most() const;
};

// Whether attention exchanges heads for tokens.
inline bool has_heads_exchanged(const LayerExchanges& exchanges) {
  return exchanges.queries > 0 || exchanges.results > 0;
}

// Whether something learns before layer number `index`; otherwise its input needs no gradient.
bool has_parameters_before(const std::vector<Layer>& layers, std::size_t index);

// Returns the exchanges of layer number `index` of a model, of which the device has `part` (divided_layer()), on
// `examples` examples.
LayerExchanges layer_exchanges(const std::vector<Layer>& layers, std::size_t index, const Layer& part,
                               const LayerDivision& division, std::int64_t examples);

}  // namespace tandem
