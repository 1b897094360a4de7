// The optimizers of tf.keras.optimizers, with TensorFlow's formulas and defaults. g is the gradient of variable w, t
// the number of the step from 1; all operations are by element.
//
// Threads and contexts: see optimizer.h.
#pragma once

#include "strategies/training/optimizer.h"

namespace tandem::optimizers {

// Without momentum w -= rate g. With it, in slot "momentum" (Sutskever et al., ICML 2013):
//   m = momentum m - rate g;  w += m,  with nesterov  w += momentum m - rate g
// IndexedSlices change their rows only, of the slot, too.
struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  Clipping clipping{};
  std::string name = "SGD";
};
class SGD final : public Optimizer {
 public:
  explicit SGD(SGDOptions options = {});  // ValueError for a momentum outside [0, 1]

 protected:
  std::vector<SlotSpec> slots() const override;
  Sparse sparse() const override;
  void update(const Step& step, const Operands& operands) const override;

 private:
  double momentum_;
  bool nesterov_;
};

// In slot "accumulator" (Duchi et al., JMLR 12, 2011):  a += g^2;  w -= rate g / (sqrt(a) + epsilon)
// IndexedSlices change their rows only.
struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  Clipping clipping{};
  std::string name = "Adagrad";
};
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(AdagradOptions options = {});  // ValueError for a negative initial value

 protected:
  std::vector<SlotSpec> slots() const override;
  Sparse sparse() const override { return Sparse::by_rows; }
  void update(const Step& step, const Operands& operands) const override;

 private:
  double initial_accumulator_value_, epsilon_;
};

// In slots "rms", with momentum "momentum", and centered "mg" (Hinton, lecture 6 of Neural Networks for Machine
// Learning, 2012; centered: Graves, arXiv:1308.0850):
//   r = rho r + (1 - rho) g^2;  centered: c = rho c + (1 - rho) g, d = r - c^2, else d = r
//   w -= rate g / (sqrt(d) + epsilon),  with momentum  m = momentum m + rate g / sqrt(d + epsilon), w -= m
// IndexedSlices change only their rows where there is momentum; otherwise r and c decay in all rows.
struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
  Clipping clipping{};
  std::string name = "RMSprop";
};
class RMSprop final : public Optimizer {
 public:
  explicit RMSprop(RMSpropOptions options = {});  // ValueError for a momentum outside [0, 1]

 protected:
  std::vector<SlotSpec> slots() const override;
  Sparse sparse() const override { return momentum_ > 0 ? Sparse::by_rows : Sparse::as_dense; }
  void update(const Step& step, const Operands& operands) const override;

 private:
  double rho_, momentum_, epsilon_;
  bool centered_;
};

// In slots "m", "v" and, with amsgrad, "vhat" (Kingma and Ba, ICLR 2015, the formula before section 2.1; amsgrad: Reddi
// et al., ICLR 2018):
//   m = beta_1 m + (1 - beta_1) g;  v = beta_2 v + (1 - beta_2) g^2;  amsgrad: vhat = max(vhat, v), in place of v below
//   w -= rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
// IndexedSlices count as a dense gradient: m and v decay in all rows.
struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9, beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  Clipping clipping{};
  std::string name = "Adam";
};
class Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});

 protected:
  std::vector<SlotSpec> slots() const override;
  bool depends_on_step() const override { return true; }
  void update(const Step& step, const Operands& operands) const override;

 private:
  double beta_1_, beta_2_, epsilon_;
  bool amsgrad_;
};

// Adam, after  w -= rate weight_decay w  (Loshchilov and Hutter, ICLR 2019).
struct AdamWOptions {
  double weight_decay = 0.004;
  AdamOptions adam{.name = "AdamW"};
};
class AdamW final : public Adam {
 public:
  explicit AdamW(AdamWOptions options = {});

 protected:
  void update(const Step& step, const Operands& operands) const override;

 private:
  double weight_decay_;
};

}  // namespace tandem::optimizers
