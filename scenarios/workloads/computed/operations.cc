#include "scenarios/workloads/computed/operations.h"

#include <algorithm>

#include "engine/layer_ops.h"

namespace tandem {
namespace {

constexpr double kNormEpsilon = 1e-5;

// Operations that belong to attention, which does them itself.
bool is_of_attention(Pointwise operation) {
  return operation == Pointwise::transpose || operation == Pointwise::scale || operation == Pointwise::mask ||
         operation == Pointwise::rotary;
}

}  // namespace

Operations::Operations(StageState& state, std::size_t layer, const OutputPart& part)
    : state_(state), layer_(layer), index_(static_cast<int>(state.part().first + layer)), part_(part) {
  make_steps();
  if (!is_loss()) return;
  of_logits_ = state.keep(layer, part.rows, part.columns, state.dtype(), true);
  if (!divides_loss()) return;
  for (Kept* const each : {&maxima_, &sums_, &targets_}) *each = state.keep(layer, part.rows, 1, state.dtype(), true);
}

void Operations::make_steps() {
  const Layer& layer = state_.whole(layer_);
  const bool is_table = layer.embedding.has_value();
  // Where there are weights of its own, they come first.
  const bool has_weights = !layer.shared_weights && !layer.routing;
  std::int64_t parameters = has_weights ? state_.layer(layer_).tensors.front() : 0;
  int number = 0;
  for (const Pointwise operation : layer.then) {
    const bool is_of_table = is_table && operation == Pointwise::residual;
    if (operation == Pointwise::cross_entropy || is_of_attention(operation) || is_of_table) continue;
    Step step{
        .operation = operation, .number = number++, .parameters = parameters, .left = LeftGradient(state_.part())};
    const Pointwise before = steps_.empty() ? Pointwise::bias : steps_.back().operation;
    if (operation == Pointwise::bias) parameters += part_.columns;
    if (is_row_norm(operation)) {
      parameters += (operation == Pointwise::layer_norm ? 2 : 1) * part_.columns;
      const DType precise = state_.dtype() == DType::f64 ? DType::f64 : DType::f32;
      step.statistics = state_.keep(layer_, part_.rows, 2, precise, true);
    }
    step.is_in_place = is_in_place(operation, before);
    steps_.push_back(std::move(step));
  }
  bool is_output = true;  // the last result that is not in place
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].is_in_place) continue;
    steps_[i].result = state_.keep(layer_, part_.rows, part_.columns, state_.dtype(), is_output);
    is_output = false;
  }
  product_ = state_.keep(layer_, part_.rows, part_.columns, state_.dtype(), is_output);
}

// The backward passes of some operations need their inputs, those of others their results.
bool Operations::is_in_place(Pointwise operation, Pointwise before) const {
  if (operation == Pointwise::gelu || operation == Pointwise::gate || is_row_norm(operation)) return false;
  return before != Pointwise::relu && before != Pointwise::softmax;
}

Tensor Operations::output(const Pass& pass) const {
  return input_of(steps_.size(), pass);
}

// Returns the matrix on which a step works.
Tensor Operations::input_of(std::size_t step, const Pass& pass) const {
  for (std::size_t i = step; i-- > 0;) {
    if (steps_[i].result) return steps_[i].result.at(pass);
  }
  return product_.at(pass);
}

Tensor Operations::vector(const Tensor& flat, std::int64_t first) const {
  return flat.flat_slice(first, part_.columns);
}

void Operations::forward(const Pass& pass, const LayerTensors& tensors) {
  Tensor current = product_.at(pass);
  for (const Step& step : steps_) apply(step, pass, tensors, current);
  state_.set_output(index_, pass, current);
  if (is_loss()) apply_loss(pass, current);
}

void Operations::apply(const Step& step, const Pass& pass, const LayerTensors& tensors, Tensor& current) {
  const Tensor result = step.result ? step.result.at(pass) : current;
  const LayerFlow& flow = state_.flow(layer_);
  switch (step.operation) {
    case Pointwise::bias:
      state_.launch(op::add_bias(current, vector(tensors.parameters, step.parameters)));
      break;
    case Pointwise::relu:
      state_.launch(op::relu(result, current));
      break;
    case Pointwise::gelu:
      state_.launch(op::activate(kernel::Activation::gelu, result, current));
      break;
    case Pointwise::gate:
      state_.launch(op::activate(kernel::Activation::silu, result, state_.output(flow.gate, pass)));
      state_.launch(op::elementwise(kernel::Binary::multiply, result, result, current), "gate");
      break;
    case Pointwise::dropout:
      if (state_.settings().dropout > 0) state_.launch(dropout(step, pass, current));
      break;
    case Pointwise::residual:
      state_.launch(op::scale_add(current, state_.output(flow.shortcut, pass), 1, 1), "residual");
      break;
    case Pointwise::softmax:
      state_.launch(op::softmax(current, current));
      break;
    default: {
      const bool is_centered = step.operation == Pointwise::layer_norm;
      const Tensor shift = is_centered ? vector(tensors.parameters, step.parameters + part_.columns) : Tensor();
      state_.launch(op::normalize(result, step.statistics.at(pass), current,
                                  vector(tensors.parameters, step.parameters), shift, kNormEpsilon));
    }
  }
  current = result;
}

// Numbers elements as in the whole batch, so that every way to divide it drops the same ones.
Op Operations::dropout(const Step& step, const Pass& pass, const Tensor& matrix) const {
  const StagePart& part = state_.part();
  const Layer& whole = state_.whole(layer_);
  const std::int64_t tokens = token_rows(whole);
  const std::int64_t mine = tokens / part.division.context;
  const std::int64_t rows = matrix.shape()[0];
  const std::int64_t first_row = part_.has_row_parts ? part.tensor_part * rows : 0;
  const std::int64_t first_token = pass.first * tokens + part.context_part * mine;
  return op::dropout(matrix, matrix, state_.settings().dropout, state_.dropout_seed(index_, step.number),
                     {.first = first_row * part_.columns,
                      .offset = first_token * part_.all_columns + part_.first_column,
                      .sizes = {1, 1, mine, part_.columns},
                      .strides = {tokens * part_.all_columns, 0, part_.all_columns, 1}});
}

bool Operations::is_loss() const {
  return std::ranges::count(state_.whole(layer_).then, Pointwise::cross_entropy) > 0;
}

bool Operations::divides_loss() const {
  return state_.part().division.tensor > 1 && tandem::divides_loss(state_.whole(layer_));
}

// Micro-batches that enter from the other end have numbers of their own in this stage.
Tensor Operations::loss(const Pass& pass) const {
  return state_.losses.slice(pass.index % state_.part().passes, 1);
}

Tensor Operations::labels(const Pass& pass) const {
  return state_.batch.labels.flat_slice(pass.offset * part_.rows, pass.examples * part_.rows);
}

// The loss is a mean over all rows of the whole batch.
double Operations::loss_scale() const {
  const std::int64_t rows = state_.whole(layer_).gemm->rows;
  return 1.0 / static_cast<double>(state_.settings().batch * rows);
}

void Operations::apply_loss(const Pass& pass, const Tensor& logits) {
  if (divides_loss()) return state_.launch(op::row_maxima(maxima_.at(pass).flat_slice(0, logits.shape()[0]), logits));
  state_.launch(op::softmax_cross_entropy({.loss = loss(pass),
                                           .gradient = of_logits_.at(pass),
                                           .correct = {},
                                           .logits = logits,
                                           .labels = labels(pass),
                                           .loss_scale = loss_scale(),
                                           .gradient_scale = loss_scale()}));
}

Exchanged Operations::loss_operands(Exchange exchange, const Pass& pass) const {
  const Kept& rows = exchange == Exchange::loss_maxima ? maxima_ : exchange == Exchange::loss_sums ? sums_ : targets_;
  return {.whole = rows.at(pass)};
}

void Operations::loss_sums(const Pass& pass) {
  const auto rows = [&pass](const Kept& kept) { return kept.at(pass).flat_slice(0, kept.at(pass).element_count()); };
  state_.launch(
      op::exponential_sums(rows(sums_), rows(targets_), output(pass), rows(maxima_), labels(pass), part_.first_column));
}

void Operations::divided_loss(const Pass& pass) {
  const auto rows = [&pass](const Kept& kept) { return kept.at(pass).flat_slice(0, kept.at(pass).element_count()); };
  state_.launch(op::divided_cross_entropy({.loss = loss(pass),
                                           .gradient = of_logits_.at(pass),
                                           .logits = output(pass),
                                           .maxima = rows(maxima_),
                                           .sums = rows(sums_),
                                           .targets = rows(targets_),
                                           .labels = labels(pass),
                                           .first = part_.first_column,
                                           .loss_scale = loss_scale(),
                                           .gradient_scale = loss_scale()}));
}

Tensor Operations::backward(const Pass& pass, const LayerTensors& tensors) {
  Tensor gradient = is_loss() ? of_logits_.at(pass) : state_.whole_gradient(index_, output(pass));
  for (std::size_t i = steps_.size(); i-- > 0;) revert(i, pass, tensors, gradient);
  return gradient;
}

void Operations::revert(std::size_t number, const Pass& pass, const LayerTensors& tensors, Tensor& gradient) {
  Step& step = steps_[number];
  const Tensor input = input_of(number, pass), result = input_of(number + 1, pass);
  const LayerFlow& flow = state_.flow(layer_);
  switch (step.operation) {
    case Pointwise::bias:
      break;  // see bias_gradient()
    case Pointwise::relu:
      return state_.launch(op::relu_gradient(gradient, gradient, result));
    case Pointwise::gelu:
      return state_.launch(op::activation_gradient(kernel::Activation::gelu, gradient, gradient, input));
    case Pointwise::gate: {
      const Tensor gate = state_.output(flow.gate, pass), of_gate = state_.gradient(flow.gate, gate);
      state_.launch(op::elementwise(kernel::Binary::multiply, of_gate, gradient, input), "gate gradient");
      state_.launch(op::activation_gradient(kernel::Activation::silu, of_gate, of_gate, gate));
      state_.begin_gradient(flow.gate);
      const Tensor opened = state_.scratch(StageState::Use::other, gate.element_count()).view(0, gate.shape());
      state_.launch(op::activate(kernel::Activation::silu, opened, gate));
      return state_.launch(op::elementwise(kernel::Binary::multiply, gradient, gradient, opened), "gate gradient");
    }
    case Pointwise::dropout:
      if (state_.settings().dropout > 0) state_.launch(dropout(step, pass, gradient));
      break;
    case Pointwise::residual:
      return state_.add_shortcut(flow.shortcut, gradient);
    case Pointwise::softmax:
      return state_.launch(op::softmax_gradient(gradient, gradient, result));
    default: {
      norm_gradients(step, pass, tensors, gradient, input);
      state_.launch(op::normalize_gradient(gradient, gradient, input, step.statistics.at(pass),
                                           vector(tensors.parameters, step.parameters),
                                           step.operation == Pointwise::layer_norm));
    }
  }
}

// Gradients in a buffer of a collective belong to one pass at a time; where those of weights are one of their own, they
// have no place there before it.
void Operations::norm_gradients(Step& step, const Pass& pass, const LayerTensors& tensors, const Tensor& gradient,
                                const Tensor& input) {
  const std::int64_t count = (step.operation == Pointwise::layer_norm ? 2 : 1) * part_.columns;
  const bool leaves = pass.kind == PipelineAction::Pass::inputs && state_.part().gathers_each_pass;
  if (leaves && !step.left.at(pass)) step.left.set(pass, state_.device().allocate(state_.dtype(), {count}));
  const Tensor all = leaves ? step.left.at(pass) : tensors.gradients.flat_slice(step.parameters, count);
  const Tensor shift = step.operation == Pointwise::layer_norm ? vector(all, part_.columns) : Tensor();
  state_.launch(op::normalize_parameter_gradients(vector(all, 0), shift, gradient, input, step.statistics.at(pass),
                                                  !leaves && !pass.is_first));
}

void Operations::parameter_gradients(const Pass& pass, const LayerTensors& tensors, const Tensor& of_product) {
  bias_gradient(pass, tensors, of_product);
  if (pass.kind != PipelineAction::Pass::weights || !state_.part().gathers_each_pass) return;
  for (const Step& step : steps_) {
    if (!is_row_norm(step.operation)) continue;
    const Tensor& left = step.left.at(pass);
    state_.launch(op::scale_add(tensors.gradients.flat_slice(step.parameters, left.element_count()), left, 1,
                                pass.is_first ? 0 : 1),
                  "accumulate");
  }
}

void Operations::bias_gradient(const Pass& pass, const LayerTensors& tensors, const Tensor& of_product) {
  const auto bias = std::ranges::find(steps_, Pointwise::bias, &Step::operation);
  if (bias == steps_.end()) return;
  const Tensor gradient = vector(tensors.gradients, bias->parameters);
  if (pass.is_first) return state_.launch(op::sum_axis(gradient, of_product, 0));
  const Tensor sum = state_.scratch(StageState::Use::other, part_.columns);
  state_.launch(op::sum_axis(sum, of_product, 0));
  state_.launch(op::scale_add(gradient, sum, 1, 1), "accumulate");
}

}  // namespace tandem
