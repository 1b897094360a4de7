// The work of one device of a mesh for one layer of a table: its kernels, and how much it exchanges with other devices.
// Numbers of elements are 0 where nothing is exchanged.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/layer_division.h"
#include "scenarios/workloads/layer_kernels.h"

namespace tandem {

struct LayerWork {
  std::vector<LayerKernel> forward{}, backward{};
  std::int64_t summed_output = 0, summed_gradient = 0;  // elements that the tensor-parallel devices sum; 0: none
  std::int64_t loss_rows = 0;                           // rows whose maxima and sums they exchange
  // With sequence parallelism: the elements of the input, gathered forward and again backward, and of the gradient of
  // the output, gathered after the first `kernels_on_rows` kernels of `backward`.
  std::int64_t gathered_input = 0, gathered_again = 0, gathered_gradient = 0;
  std::size_t kernels_on_rows = 0;               // see above
  std::int64_t keys = 0;                         // elements of keys or values, which a sequence's devices exchange
  std::int64_t dispatched = 0, combined = 0;     // elements that go to the devices with the experts, and back
  std::optional<std::size_t> recomputed_from{};  // the block that ends here is computed again

  // Returns the largest of these exchanges, except that of the loss.
  std::int64_t most_exchanged() const;
};

// Returns the work of layer number `index` of a model, of which the device has `part` (divided_layer()), on `examples`
// examples.
LayerWork layer_work(const std::vector<Layer>& layers, std::size_t index, const Layer& part,
                     const LayerDivision& division, const LayerKernels& kernels, std::int64_t examples);

}  // namespace tandem
