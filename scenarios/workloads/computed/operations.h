// The operations that follow a product, on the rows and columns of it that a device has: bias, activations, dropout,
// residual, norms and the loss.
#pragma once

#include <vector>

#include "scenarios/workloads/computed/stage_state.h"

namespace tandem {

// The part of a layer's output that a device has.
struct OutputPart {
  std::int64_t rows = 1, columns = 1;  // of one example
  std::int64_t first_column = 0, all_columns = 1;
  bool has_row_parts = false;  // whether tensor-parallel devices divide the rows of all examples
};

class Operations {
 public:
  Operations(StageState& state, std::size_t layer, const OutputPart& part);

  Tensor product(const Pass& pass) const { return product_.at(pass); }  // where the product goes
  Tensor output(const Pass& pass) const;
  void forward(const Pass& pass, const LayerTensors& tensors);
  // The two parts of a loss whose columns are divided, after the exchanges of maxima and of sums.
  void loss_sums(const Pass& pass);
  void divided_loss(const Pass& pass);
  Exchanged loss_operands(Exchange exchange, const Pass& pass) const;
  // Turns the gradient of the output into that of the product, in place, and returns it.
  Tensor backward(const Pass& pass, const LayerTensors& tensors);
  // The gradient of the bias, from that of the product, and what backward() has left of others.
  void parameter_gradients(const Pass& pass, const LayerTensors& tensors, const Tensor& of_product);

 private:
  struct Step {
    Pointwise operation = Pointwise::bias;
    int number = 0;               // among the layer's operations
    std::int64_t parameters = 0;  // where its parameters begin in the layer's
    bool is_in_place = true;
    Kept result{};      // where it is not
    Kept statistics{};  // of norms
    LeftGradient left;  // of their parameters
  };
  void make_steps();
  bool is_in_place(Pointwise operation, Pointwise before) const;
  void apply(const Step& step, const Pass& pass, const LayerTensors& tensors, Tensor& current);
  void apply_loss(const Pass& pass, const Tensor& logits);
  void revert(std::size_t step, const Pass& pass, const LayerTensors& tensors, Tensor& gradient);
  Tensor input_of(std::size_t step, const Pass& pass) const;
  Op dropout(const Step& step, const Pass& pass, const Tensor& matrix) const;
  Tensor vector(const Tensor& flat, std::int64_t first) const;
  void norm_gradients(Step& step, const Pass& pass, const LayerTensors& tensors, const Tensor& gradient,
                      const Tensor& input);
  void bias_gradient(const Pass& pass, const LayerTensors& tensors, const Tensor& of_product);
  bool is_loss() const;
  bool divides_loss() const;
  Tensor loss(const Pass& pass) const;
  Tensor labels(const Pass& pass) const;
  double loss_scale() const;
  const Name& name(const char* what) const;

  StageState& state_;
  std::size_t layer_;
  int index_;  // of the layer, in the model
  OutputPart part_;
  Kept product_;
  std::vector<Step> steps_;
  Kept of_logits_{}, maxima_{}, sums_{}, targets_{};
};

}  // namespace tandem
