// Launches the work of one layer of a model as ops with the layer's shapes, on memory without meaningful values.
//
// The `count` products of one example are launched as one product with the rows of all. It has the same flops and,
// since its cost includes the weights that each of them would read, the same bytes.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/layer_kernels.h"

namespace tandem {

// Numbers of elements that suffice for the operands of every layer. Without `keeps_scores`, those of attention share
// the memory of other operands, a part of them at a time.
struct ScratchSizes {
  std::int64_t left = 1, right = 1, result = 1;
};
ScratchSizes scratch_sizes(const std::vector<Layer>& layers, std::int64_t batch, bool keeps_scores = true);

// Flat tensors of at least these sizes.
struct Scratch {
  Tensor left, right, result;
  // Nothing is written over `left`, which also replaces the gradients of results as an operand: its values then stay as
  // they are, and with them those of all products. Values that pass from product to product soon are all zero or
  // infinite, on which a GPU draws less power, and so is faster.
  bool keeps_left = false;
};

// Launches the kernels of one layer, whose flops have the rate of `dtype`.
class LayerOps {
 public:
  LayerOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype);

  // Writes gradients of weights to `of_weights` (flat), or over the right operand if that is empty. `adds`: they are
  // added to what is there, as kernel.added says.
  void launch(const LayerKernel& kernel, const Scratch& scratch, const Tensor& of_weights = {},
              bool adds = false) const;

 private:
  // Returns a product of as many rows as the operands have memory for, repeated to make up for the others.
  Op product_of(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch, const Tensor& of_weights) const;
  Op product(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch, const Tensor& of_weights) const;
  Op kept_product(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch, const Tensor& of_weights) const;

  double operand_elements(LayerKernel::Part part) const;

  Stream& stream_;
  DType dtype_;
  std::int64_t m_ = 0, n_ = 0, k_ = 0;
  double extra_elements_ = 0;  // of the weights that each of `count` products has for itself
  double saved_elements_ = 0;  // of an implicit left operand, smaller than m x k
};

// Launches work that moves `kernel.bytes` of memory, as ops that read `from` and write `to`, which may be shorter.
void launch_memory(Stream& stream, const LayerKernel& kernel, const Tensor& to, const Tensor& from,
                   Category category = Category::compute);

// Returns the memory traffic of an optimizer for `parameters` besides the three passes of plain SGD: its moments, and
// where parameters are used in half precision, their copies. Moments are read and written in their types.
LayerKernel optimizer_state(const TrainingSettings& settings, std::int64_t parameters);

// Returns the kernel that quantises elements of `from`: usually with a second copy for the product that reads them
// transposed.
LayerKernel quantisation(const Name& name, std::int64_t elements, DType from, DType to, ScalingRecipe recipe,
                         int copies = 2);
// Returns the kernel that copies quantised elements into another order.
LayerKernel transposition(const Name& name, std::int64_t elements, DType type);

// Returns the kernel that adds gradients to those of earlier passes over parts of a batch.
LayerKernel accumulation(std::int64_t parameters, DType stored);

}  // namespace tandem
