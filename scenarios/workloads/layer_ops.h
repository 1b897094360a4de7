// The work of one layer of a model as ops of its true shapes, on memory whose values mean nothing.
//
// `count` products of one example run as a single one of as many rows: the same flops and, with the weights' share
// added to its cost, the same bytes.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "scenarios/model.h"

namespace tandem {

// Elements that every layer of a model finds room in: the operands of products and of element-wise work.
struct ScratchSizes {
  std::int64_t left = 1, right = 1, result = 1;
};
ScratchSizes scratch_sizes(const Model& model, std::int64_t batch);

// Flat tensors of at least those sizes.
struct Scratch {
  Tensor left, right, result;
};

// For layers with a product. `dtype`: at which rate the flops run.
class ProductOps {
 public:
  ProductOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype);

  std::int64_t weights() const { return k_ * n_; }  // elements of the right operand
  void forward(const Scratch& scratch) const;
  // The gradients of the weights go to `of_weights` (flat), or over the right operand where it is empty.
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

// For layers with element-wise work: so many passes over it, each a read or a write.
void launch_elementwise(Stream& stream, const Layer& layer, std::int64_t batch, const Scratch& scratch, int passes);

// Which of the two input buffers a step reads: the next batch is copied into the other one meanwhile.
inline std::size_t input_slot(int step) {
  return static_cast<std::size_t>(step % 2);
}

}  // namespace tandem
