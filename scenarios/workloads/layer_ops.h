// The work of one layer of a model as ops with the layer's shapes, on memory without meaningful values.
//
// The `count` products of one example are one product with the rows of all: the same flops and, since its cost includes
// the weights that each would read, the same bytes.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "scenarios/scenario.h"
#include "scenarios/workloads/layer_kernels.h"

namespace tandem {

// Elements that suffice for the operands of every one of the layers.
struct ScratchSizes {
  std::int64_t left = 1, right = 1, result = 1;
};
ScratchSizes scratch_sizes(const std::vector<Layer>& layers, std::int64_t batch);

// Flat tensors of at least these sizes.
struct Scratch {
  Tensor left, right, result;
};

// Launches the kernels of one layer. `dtype` decides the rate of the flops.
class LayerOps {
 public:
  LayerOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype);

  // `of_weights`: where gradients of weights go (flat); over the right operand if it is empty.
  void launch(const LayerKernel& kernel, const Scratch& scratch, const Tensor& of_weights = {}) const;

 private:
  Op product(LayerKernel::Part part, const Scratch& scratch, const Tensor& of_weights) const;

  Stream& stream_;
  const Layer& layer_;
  DType dtype_;
  std::int64_t m_ = 0, n_ = 0, k_ = 0;
  double extra_elements_ = 0;  // of weights that `count` products have each for themselves
  double saved_elements_ = 0;  // of an implicit left operand, smaller than m x k
};

// Launches work that moves `kernel.bytes` of memory, as ops that read `from` and write `to`, which may be shorter.
void launch_memory(Stream& stream, const LayerKernel& kernel, const Tensor& to, const Tensor& from,
                   Category category = Category::compute);

// What an optimizer moves for `parameters` beside the three passes of plain SGD: its moments, and where parameters are
// used in half precision, their copies.
LayerKernel optimizer_state(Optimizer optimizer, std::int64_t parameters, DType used, DType stored);

// The sum of gradients with those of earlier passes over parts of a batch.
LayerKernel accumulation(std::int64_t parameters, DType stored);

// The index of the input buffer that a step reads, while the next batch is copied into the other one.
inline std::size_t input_slot(int step) {
  return static_cast<std::size_t>(step % 2);
}

}  // namespace tandem
