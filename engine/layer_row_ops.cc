// The ops of engine/layer_ops.h that select, divide or share out rows.
#include "engine/layer_ops.h"

#include <array>

#include "engine/op_making.h"

namespace tandem::op {

using making::bytes_of;
using making::check_count;
using making::check_floating;
using making::check_indices;
using making::check_like;
using making::check_matrix;
using making::check_shape;
using making::count_of;
using making::make;

// As if the table had every row that is named.
Op gather_rows(Tensor to, Tensor table, Tensor indices, std::int64_t first, bool accumulates) {
  TANDEM_REQUIRE(to && table, "gather_rows without an operand");
  check_matrix(table, "gather_rows");
  check_indices(indices, indices ? indices.element_count() : 0, "gather_rows");
  TANDEM_REQUIRE(to.dtype() == table.dtype(), "gather_rows of different element types");
  check_count(to, indices.element_count() * table.shape()[1], "gather_rows");
  const OpCost cost{accumulates ? count_of(to) : 0, (accumulates ? 3 : 2) * bytes_of(to) + bytes_of(indices),
                    to.dtype()};
  static const Name kName("gather_rows");
  return make(kName, cost, kernel::GatherRows{std::move(to), std::move(table), std::move(indices), first, accumulates});
}

// Each changed row is read, changed and written.
Op add_rows(Tensor table, Tensor rows, Tensor indices, std::int64_t first) {
  TANDEM_REQUIRE(rows && table, "add_rows without an operand");
  check_matrix(table, "add_rows");
  check_indices(indices, indices ? indices.element_count() : 0, "add_rows");
  TANDEM_REQUIRE(rows.dtype() == table.dtype(), "add_rows of different element types");
  check_count(rows, indices.element_count() * table.shape()[1], "add_rows");
  const OpCost cost{count_of(rows), 3 * bytes_of(rows) + bytes_of(indices), table.dtype()};
  static const Name kName("add_rows");
  return make(kName, cost, kernel::AddRows{std::move(table), std::move(rows), std::move(indices), first});
}

namespace {

// Whether the elements from `first` at these strides are all in a tensor.
bool is_inside(const Tensor& tensor, std::int64_t first, const std::array<std::int64_t, 4>& sizes,
               const std::array<std::int64_t, 4>& strides) {
  std::int64_t least = first, most = first;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::int64_t length = (sizes[axis] - 1) * strides[axis];
    (length < 0 ? least : most) += length;
  }
  return least >= 0 && most < tensor.element_count();
}

}  // namespace

// What is repeated is read once.
Op copy_strided(Tensor to, Tensor from, const StridedCopy& copy) {
  TANDEM_REQUIRE(to && from && to.dtype() == from.dtype(), "copy_strided without operands of one element type");
  double written = 1, read = 1;
  bool writes_once = true;
  for (std::size_t axis = 0; axis < copy.sizes.size(); ++axis) {
    const std::int64_t size = copy.sizes[axis];
    TANDEM_REQUIRE(size >= 0, "copy_strided of a negative number of elements");
    written *= static_cast<double>(size);
    read *= copy.from_strides[axis] == 0 && size > 0 ? 1 : static_cast<double>(size);
    writes_once = writes_once && (size <= 1 || copy.to_strides[axis] != 0);
  }
  TANDEM_REQUIRE(written == 0 || (is_inside(to, copy.to_first, copy.sizes, copy.to_strides) &&
                                  is_inside(from, copy.from_first, copy.sizes, copy.from_strides)),
                 "copy_strided outside its operands");
  TANDEM_REQUIRE(written == 0 || writes_once, "copy_strided to one place several times");
  const OpCost cost{0, (read + written) * static_cast<double>(size_of(to.dtype())), to.dtype()};
  static const Name kName("copy_strided");
  return make(kName, cost, kernel::CopyStrided{std::move(to), std::move(from), copy});
}

Op row_maxima(Tensor maxima, Tensor logits) {
  check_floating({&maxima, &logits}, "row_maxima");
  check_matrix(logits, "row_maxima");
  check_count(maxima, logits.shape()[0], "row_maxima");
  const OpCost cost{count_of(logits), bytes_of(logits) + bytes_of(maxima), logits.dtype()};
  static const Name kName("row_maxima");
  return make(kName, cost, kernel::RowMaxima{std::move(maxima), std::move(logits)});
}

// Three flops for each logit: the shift, the exponential and its sum.
Op exponential_sums(Tensor sums, Tensor targets, Tensor logits, Tensor maxima, Tensor labels, std::int64_t first) {
  check_floating({&sums, &targets, &logits, &maxima}, "exponential_sums");
  check_matrix(logits, "exponential_sums");
  for (const Tensor* of_rows : {&sums, &targets, &maxima}) {
    check_count(*of_rows, logits.shape()[0], "exponential_sums");
  }
  check_indices(labels, logits.shape()[0], "exponential_sums");
  const OpCost cost{3 * count_of(logits), bytes_of(logits) + 3 * bytes_of(maxima) + bytes_of(labels), logits.dtype()};
  static const Name kName("exponential_sums");
  return make(kName, cost,
              kernel::ExponentialSums{std::move(sums), std::move(targets), std::move(logits), std::move(maxima),
                                      std::move(labels), first});
}

// Three flops for each logit's gradient: the shift, the exponential and the quotient. Three for each row's loss.
Op divided_cross_entropy(DividedCrossEntropy operands) {
  constexpr const char* kWhat = "divided_cross_entropy";
  check_floating({&operands.logits, &operands.maxima, &operands.sums, &operands.targets}, kWhat);
  check_matrix(operands.logits, kWhat);
  const std::int64_t rows = operands.logits.shape()[0];
  for (const Tensor* of_rows : {&operands.maxima, &operands.sums, &operands.targets})
    check_count(*of_rows, rows, kWhat);
  check_indices(operands.labels, rows, kWhat);
  TANDEM_REQUIRE(operands.loss || operands.gradient, "divided_cross_entropy without a result");
  TANDEM_REQUIRE(
      !operands.loss || (operands.loss.element_count() >= 1 && operands.loss.dtype() == operands.logits.dtype()),
      "divided_cross_entropy needs a loss of the logits' element type");
  if (operands.gradient) check_like(operands.gradient, operands.logits, "divided_cross_entropy's gradient");
  const double loss_bytes = operands.loss ? static_cast<double>(size_of(operands.loss.dtype())) +
                                                bytes_of(operands.sums) + bytes_of(operands.targets)
                                          : 0;
  const double gradient_bytes = operands.gradient
                                    ? 2 * bytes_of(operands.logits) + bytes_of(operands.maxima) +
                                          bytes_of(operands.labels) + (operands.loss ? 0 : bytes_of(operands.sums))
                                    : 0;
  const double flops = 3 * count_of(operands.gradient) + (operands.loss ? 3 * static_cast<double>(rows) : 0);
  const OpCost cost{flops, loss_bytes + gradient_bytes, operands.logits.dtype()};
  static const Name kName("divided_cross_entropy");
  return make(kName, cost, std::move(operands));
}

// At least a comparison for each element.
Op largest_of_rows(Tensor to, Tensor a, std::int64_t count) {
  check_like(to, a, "largest_of_rows");
  check_floating(a, "largest_of_rows");
  check_matrix(a, "largest_of_rows");
  TANDEM_REQUIRE(count >= 0 && count <= a.shape()[1],
                 "largest_of_rows of " + std::to_string(count) + " in rows of " + a.shape().text());
  const OpCost cost{count_of(a), 2 * bytes_of(a), a.dtype()};
  static const Name kName("largest_of_rows");
  return make(kName, cost, kernel::LargestOfRows{std::move(to), std::move(a), count});
}

namespace {

// rows: [rows, columns], of_experts: [experts, rows, columns], weights: [rows, experts].
void check_experts(const Tensor& rows, const Tensor& of_experts, const Tensor& weights, const char* name) {
  check_floating({&rows, &of_experts, &weights}, name);
  check_matrix(rows, name);
  check_matrix(weights, name);
  TANDEM_REQUIRE(weights.shape()[0] == rows.shape()[0],
                 std::string(name) + " of " + rows.shape().text() + " by weights " + weights.shape().text());
  check_shape(of_experts, {weights.shape()[1], rows.shape()[0], rows.shape()[1]}, name);
}

}  // namespace

Op dispatch_rows(Tensor to, Tensor a, Tensor weights, bool is_scaled) {
  check_experts(a, to, weights, "dispatch_rows");
  const OpCost cost{is_scaled ? count_of(to) : 0, bytes_of(to) + bytes_of(a) + bytes_of(weights), to.dtype()};
  static const Name kName("dispatch_rows");
  return make(kName, cost, kernel::DispatchRows{std::move(to), std::move(a), std::move(weights), is_scaled});
}

// As if every row went to every expert.
Op combine_rows(Tensor to, Tensor a, Tensor weights, bool is_scaled) {
  check_experts(to, a, weights, "combine_rows");
  const OpCost cost{(is_scaled ? 2 : 1) * count_of(a), bytes_of(to) + bytes_of(a) + bytes_of(weights), to.dtype()};
  static const Name kName("combine_rows");
  return make(kName, cost, kernel::CombineRows{std::move(to), std::move(a), std::move(weights), is_scaled});
}

// As if every row went to every expert.
Op expert_weight_gradients(Tensor to, Tensor a, Tensor gradient, Tensor weights) {
  check_experts(gradient, a, weights, "expert_weight_gradients");
  check_like(to, weights, "expert_weight_gradients");
  const OpCost cost{2 * count_of(a), bytes_of(a) + bytes_of(gradient) + bytes_of(weights) + bytes_of(to), to.dtype()};
  static const Name kName("expert_weight_gradients");
  return make(kName, cost,
              kernel::ExpertWeightGradients{std::move(to), std::move(a), std::move(gradient), std::move(weights)});
}

namespace {

void check_f32(const Tensor& tensor, const char* name) {
  TANDEM_REQUIRE(tensor, std::string(name) + " without an operand");
  TANDEM_REQUIRE(tensor.dtype() == DType::f32, std::string(name) + " needs operands of f32");
}

}  // namespace

Op raise_maximum(Tensor maximum, Tensor a) {
  check_f32(maximum, "raise_maximum");
  check_f32(a, "raise_maximum");
  check_count(maximum, 1, "raise_maximum");
  const OpCost cost{count_of(a), bytes_of(a) + 2 * bytes_of(maximum), a.dtype()};
  static const Name kName("raise_maximum");
  return make(kName, cost, kernel::RaiseMaximum{std::move(maximum), std::move(a)});
}

// A product before the element is rounded and one afterwards; a comparison where blocks have maxima of their own.
Op quantise(Tensor to, Tensor a, QuantiseSettings settings, Tensor maximum) {
  check_like(to, a, "quantise");
  check_f32(a, "quantise");
  TANDEM_REQUIRE(a.shape().rank() >= 2, "quantise of " + a.shape().text() + ", must have rows and columns");
  TANDEM_REQUIRE(settings.rows >= 0 && settings.columns >= 0, "quantise of blocks with sides below 0");
  if (maximum) {
    check_f32(maximum, "quantise");
    check_count(maximum, 1, "quantise's maximum");
  }
  TANDEM_REQUIRE(settings.scale != ScaleType::e4m3 || maximum, "quantise with scales of e4m3 needs a maximum");
  TANDEM_REQUIRE(settings.scale != ScaleType::e8m0 || !maximum, "quantise with scales of e8m0 needs no maximum");
  const bool compares = settings.scale != ScaleType::f32 || !maximum;
  const OpCost cost{(compares ? 3 : 2) * count_of(a), bytes_of(to) + bytes_of(a) + bytes_of(maximum), a.dtype()};
  static const Name kName("quantise");
  return make(kName, cost, kernel::Quantise{std::move(to), std::move(a), std::move(maximum), settings});
}

}  // namespace tandem::op
