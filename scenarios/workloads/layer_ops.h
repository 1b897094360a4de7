// The work of one layer of a model as ops with the layer's shapes, on memory without meaningful values.
//
// The `count` products of one example are one product with the rows of all: the same flops and, since its cost includes
// the weights that each would read, the same bytes.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "scenarios/model.h"

namespace tandem {

// Elements that suffice for the operands of every layer of a model.
struct ScratchSizes {
  std::int64_t left = 1, right = 1, result = 1;
};
ScratchSizes scratch_sizes(const Model& model, std::int64_t batch);

// Flat tensors of at least these sizes.
struct Scratch {
  Tensor left, right, result;
};

// The matrix products of a layer that has some. `dtype` decides the rate of the flops.
class ProductOps {
 public:
  ProductOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype);

  std::int64_t weights() const { return k_ * n_; }  // elements of the right operand
  void forward(const Scratch& scratch) const;
  // Writes the gradients of the weights to `of_weights` (flat), or over the right operand if that is empty.
  void weight_gradient(const Scratch& scratch, const Tensor& of_weights) const;
  void input_gradient(const Scratch& scratch) const;

 private:
  struct Operands {
    Tensor left, right, result;
  };
  Operands operands(const Scratch& scratch) const;
  void launch(Op op, const char* what) const;

  Stream& stream_;
  const Layer& layer_;
  DType dtype_;
  std::int64_t m_, n_, k_;
  double extra_elements_ = 0;  // of weights that `count` products have each for themselves
  double saved_elements_ = 0;  // of an implicit left operand, smaller than m x k
};

// Launches the element-wise work of a layer: `passes` passes, each a read or a write.
void launch_elementwise(Stream& stream, const Layer& layer, std::int64_t batch, const Scratch& scratch, int passes);

// The index of the input buffer that a step reads, while the next batch is copied into the other one.
inline std::size_t input_slot(int step) {
  return static_cast<std::size_t>(step % 2);
}

}  // namespace tandem
