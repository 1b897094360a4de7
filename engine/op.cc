#include "engine/op.h"

#include <array>
#include <cmath>

#include "engine/kernel_operands.h"
#include "engine/op_making.h"

namespace tandem::op {

using making::bytes_of;
using making::check_like;
using making::count_of;
using making::is_floating;
using making::make;

// 2 m n k flops: a multiplication and an addition for each term of each sum.
Op gemm(Tensor c, Tensor a, Tensor b, bool transpose_a, bool transpose_b, double alpha, double beta) {
  TANDEM_REQUIRE(a && b && c, "gemm without an operand");
  TANDEM_REQUIRE(a.shape().rank() == 2 && b.shape().rank() == 2 && c.shape().rank() == 2,
                 "gemm of other than matrices");
  TANDEM_REQUIRE(a.dtype() == b.dtype() && a.dtype() == c.dtype(), "gemm of different element types");
  TANDEM_REQUIRE(is_floating(c.dtype()), "gemm of integers");
  const std::int64_t m = a.shape()[transpose_a ? 1 : 0];
  const std::int64_t k = a.shape()[transpose_a ? 0 : 1];
  const std::int64_t n = b.shape()[transpose_b ? 0 : 1];
  TANDEM_REQUIRE(b.shape()[transpose_b ? 1 : 0] == k && c.shape() == (Shape{m, n}),
                 "gemm of " + a.shape().text() + " and " + b.shape().text() + " to " + c.shape().text());
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double bytes = bytes_of(a) + bytes_of(b) + bytes_of(c) * (beta == 0 ? 1 : 2);
  const DType dtype = c.dtype();
  static const Name kName("gemm");
  return make(kName, {flops, bytes, dtype},
              kernel::Gemm{.c = std::move(c),
                           .a = std::move(a),
                           .b = std::move(b),
                           .m = m,
                           .n = n,
                           .k = k,
                           .transpose_a = transpose_a,
                           .transpose_b = transpose_b,
                           .alpha = alpha,
                           .beta = beta});
}

Op fill(Tensor to, double value) {
  TANDEM_REQUIRE(to, "fill without an operand");
  const OpCost cost{0, bytes_of(to), to.dtype()};
  static const Name kName("fill");
  return make(kName, cost, kernel::Fill{std::move(to), value});
}

Op elementwise(kernel::Binary operation, Tensor to, Tensor a, Tensor b) {
  static const std::array<Name, 6> kNames{"add", "subtract", "multiply", "divide", "maximum", "minimum"};
  check_like(to, a, "an elementwise operation");
  check_like(to, b, "an elementwise operation");
  const OpCost cost{count_of(to), 3 * bytes_of(to), to.dtype()};
  return make(kNames.at(static_cast<std::size_t>(operation)), cost,
              kernel::Elementwise{operation, std::move(to), std::move(a), std::move(b)});
}

// Factors of one and zero cost nothing, and with beta 0 the old contents are not read.
Op scale_add(Tensor to, Tensor a, double alpha, double beta) {
  check_like(to, a, "scale_add");
  TANDEM_REQUIRE(is_floating(to.dtype()) || (alpha == std::trunc(alpha) && beta == std::trunc(beta)),
                 "scale_add of integers by a fraction");
  const int flops = (alpha != 1 ? 1 : 0) + (beta != 0 ? 1 : 0) + (beta != 0 && beta != 1 ? 1 : 0);
  const OpCost cost{flops * count_of(to), (beta == 0 ? 2 : 3) * bytes_of(to), to.dtype()};
  static const Name kName("scale_add");
  return make(kName, cost, kernel::ScaleAdd{std::move(to), std::move(a), alpha, beta});
}

// Summands of zero cost nothing.
Op square_root(Tensor to, Tensor a, double inside, double outside) {
  check_like(to, a, "square_root");
  TANDEM_REQUIRE(is_floating(to.dtype()), "square_root of integers");
  const int flops = 1 + (inside != 0 ? 1 : 0) + (outside != 0 ? 1 : 0);
  const OpCost cost{flops * count_of(to), 2 * bytes_of(to), to.dtype()};
  static const Name kName("square_root");
  return make(kName, cost, kernel::SquareRoot{std::move(to), std::move(a), inside, outside});
}

Op relu(Tensor to, Tensor a) {
  check_like(to, a, "relu");
  const OpCost cost{count_of(to), 2 * bytes_of(to), to.dtype()};
  static const Name kName("relu");
  return make(kName, cost, kernel::Relu{std::move(to), std::move(a)});
}

Op relu_gradient(Tensor to, Tensor gradient, Tensor output) {
  check_like(to, gradient, "relu_gradient");
  check_like(to, output, "relu_gradient");
  const OpCost cost{count_of(to), 3 * bytes_of(to), to.dtype()};
  static const Name kName("relu_gradient");
  return make(kName, cost, kernel::ReluGradient{std::move(to), std::move(gradient), std::move(output)});
}

Op add_bias(Tensor to, Tensor bias) {
  TANDEM_REQUIRE(to && bias, "add_bias without an operand");
  TANDEM_REQUIRE(to.dtype() == bias.dtype(), "add_bias of different element types");
  TANDEM_REQUIRE(to.shape().rank() >= 1 && to.shape()[to.shape().rank() - 1] == bias.element_count(),
                 "add_bias of " + bias.shape().text() + " to rows of " + to.shape().text());
  const OpCost cost{count_of(to), 2 * bytes_of(to) + bytes_of(bias), to.dtype()};
  static const Name kName("add_bias");
  return make(kName, cost, kernel::AddBias{std::move(to), std::move(bias)});
}

Op sum_axis(Tensor to, Tensor a, int axis) {
  TANDEM_REQUIRE(to && a, "sum_axis without an operand");
  TANDEM_REQUIRE(to.dtype() == a.dtype(), "sum_axis of different element types");
  TANDEM_REQUIRE(axis >= 0 && axis < a.shape().rank(), "sum_axis over an axis that " + a.shape().text() + " lacks");
  std::int64_t remaining = 1;
  for (int other = 0; other < a.shape().rank(); ++other) remaining *= other == axis ? 1 : a.shape()[other];
  TANDEM_REQUIRE(to.element_count() == remaining, "sum_axis of " + a.shape().text() + " to " + to.shape().text());
  const OpCost cost{count_of(a), bytes_of(a) + bytes_of(to), to.dtype()};
  static const Name kName("sum_axis");
  return make(kName, cost, kernel::SumAxis{std::move(to), std::move(a), axis});
}

// Five flops for each logit: the comparison, the shift, the exponential, its sum and the quotient.
Op softmax_cross_entropy(kernel::SoftmaxCrossEntropy kernel) {
  TANDEM_REQUIRE(kernel.loss && kernel.logits && kernel.labels, "softmax_cross_entropy without an operand");
  const Shape& shape = kernel.logits.shape();
  TANDEM_REQUIRE(shape.rank() == 2 && shape[1] >= 1, "softmax_cross_entropy of logits " + shape.text());
  TANDEM_REQUIRE(is_floating(kernel.logits.dtype()), "softmax_cross_entropy of integer logits");
  TANDEM_REQUIRE(kernel.labels.element_count() == shape[0] && kernel.labels.dtype() == DType::i32,
                 "softmax_cross_entropy needs one i32 label a row");
  TANDEM_REQUIRE(kernel.loss.element_count() >= 1 && kernel.loss.dtype() == kernel.logits.dtype(),
                 "softmax_cross_entropy needs a loss of the logits' element type");
  if (kernel.gradient) check_like(kernel.gradient, kernel.logits, "softmax_cross_entropy's gradient");
  TANDEM_REQUIRE(!kernel.correct || kernel.correct.element_count() >= 1,
                 "softmax_cross_entropy without room for correct");
  const double bytes = bytes_of(kernel.logits) + bytes_of(kernel.labels) + bytes_of(kernel.gradient) +
                       static_cast<double>(size_of(kernel.loss.dtype())) +
                       (kernel.correct ? static_cast<double>(size_of(kernel.correct.dtype())) : 0);
  const OpCost cost{5 * count_of(kernel.logits), bytes, kernel.logits.dtype()};
  static const Name kName("softmax_cross_entropy");
  return make(kName, cost, std::move(kernel));
}

Op cast(Tensor to, Tensor a) {
  TANDEM_REQUIRE(to && a, "cast without an operand");
  TANDEM_REQUIRE(to.element_count() == a.element_count(), "cast of " + a.shape().text() + " to " + to.shape().text());
  const OpCost cost{count_of(to), bytes_of(to) + bytes_of(a), to.dtype()};
  static const Name kName("cast");
  return make(kName, cost, kernel::Cast{std::move(to), std::move(a)});
}

// Each changed row is read, changed and written.
Op scatter_rows(kernel::Scatter operation, Tensor to, Tensor rows, Tensor indices) {
  TANDEM_REQUIRE(to && rows && indices, "scatter_rows without an operand");
  TANDEM_REQUIRE(to.dtype() == rows.dtype() && indices.dtype() == DType::i64, "scatter_rows of other element types");
  TANDEM_REQUIRE(
      to.shape().rank() >= 1 && rows.shape().rank() == to.shape().rank() && rows.shape()[0] == indices.element_count(),
      "scatter_rows of " + rows.shape().text() + " to " + to.shape().text());
  for (int axis = 1; axis < to.shape().rank(); ++axis) {
    TANDEM_REQUIRE(to.shape()[axis] == rows.shape()[axis],
                   "scatter_rows of " + rows.shape().text() + " to " + to.shape().text());
  }
  const OpCost cost{count_of(rows), 3 * bytes_of(rows) + bytes_of(indices), to.dtype()};
  static const Name kName("scatter_rows");
  return make(kName, cost, kernel::ScatterRows{operation, std::move(to), std::move(rows), std::move(indices)});
}

Op copy_blocks(kernel::CopyBlocks kernel) {
  TANDEM_REQUIRE(kernel.count >= 0 && kernel.elements >= 0, "copy_blocks of a negative number of elements");
  TANDEM_REQUIRE(kernel.to && kernel.from && kernel.to.dtype() == kernel.from.dtype(),
                 "copy_blocks without operands of one element type");
  const auto fits = [&](const Tensor& tensor, std::int64_t first, std::int64_t stride) {
    const std::int64_t end = first + (kernel.count - 1) * stride + kernel.elements;
    return kernel.count == 0 || kernel.elements == 0 || (first >= 0 && end <= tensor.element_count());
  };
  TANDEM_REQUIRE(
      fits(kernel.to, kernel.to_first, kernel.to_stride) && fits(kernel.from, kernel.from_first, kernel.from_stride),
      "copy_blocks outside its operands");
  const double bytes =
      static_cast<double>(kernel.count * kernel.elements) * static_cast<double>(size_of(kernel.to.dtype()));
  const OpCost cost{0, 2 * bytes, kernel.to.dtype()};
  static const Name kName("copy_blocks");
  return make(kName, cost, std::move(kernel));
}

Op copy_many(std::vector<Tensor> to, std::vector<Tensor> from) {
  TANDEM_REQUIRE(!to.empty() && to.size() == from.size(), "copy_many of different numbers of tensors");
  double bytes = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    check_like(to[i], from[i], "copy_many");
    bytes += 2 * bytes_of(to[i]);
  }
  const OpCost cost{0, bytes, to.front().dtype()};
  static const Name kName("copy_many");
  return make(kName, cost, kernel::CopyMany{std::move(to), std::move(from)});
}

namespace {

// Returns the number of elements for one index of the axes before `axis`, and for one index along it.
std::pair<std::int64_t, std::int64_t> blocks_of(const Shape& shape, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  return {outer, inner};
}

void check_along(const Tensor& to, const Tensor& from, int axis, const char* name) {
  TANDEM_REQUIRE(to && from, std::string(name) + " without an operand");
  TANDEM_REQUIRE(axis >= 0 && axis < from.shape().rank() && to.shape().rank() == from.shape().rank(),
                 std::string(name) + " of " + from.shape().text() + " and " + to.shape().text() + " along axis " +
                     std::to_string(axis));
}

}  // namespace

Op place_along(Tensor to, Tensor from, int axis, std::int64_t first) {
  check_along(to, from, axis, "place_along");
  const auto [outer, inner] = blocks_of(from.shape(), axis);
  const std::int64_t length = from.shape()[axis], whole = to.shape()[axis];
  return copy_blocks({.to = std::move(to),
                      .from = std::move(from),
                      .count = outer,
                      .elements = length * inner,
                      .to_first = first * inner,
                      .to_stride = whole * inner,
                      .from_first = 0,
                      .from_stride = length * inner});
}

Op take_along(Tensor to, Tensor from, int axis, std::int64_t first) {
  check_along(to, from, axis, "take_along");
  const auto [outer, inner] = blocks_of(to.shape(), axis);
  const std::int64_t length = to.shape()[axis], whole = from.shape()[axis];
  return copy_blocks({.to = std::move(to),
                      .from = std::move(from),
                      .count = outer,
                      .elements = length * inner,
                      .to_first = 0,
                      .to_stride = length * inner,
                      .from_first = first * inner,
                      .from_stride = whole * inner});
}

namespace {

Op largest_of(Name name, Tensor&& to, Tensor&& a, bool is_of_magnitudes) {
  const std::string& text = name.text();
  TANDEM_REQUIRE(to && a, text + " without an operand");
  TANDEM_REQUIRE(to.dtype() == a.dtype() && to.element_count() == 1,
                 text + " needs one element of the operand's type for its result");
  TANDEM_REQUIRE(a.element_count() >= 1, text + " of no elements");
  const OpCost cost{count_of(a), bytes_of(a) + bytes_of(to), a.dtype()};
  return make(name, cost, kernel::Largest{std::move(to), std::move(a), is_of_magnitudes});
}

}  // namespace

Op largest(Tensor to, Tensor a) {
  static const Name kName("largest");
  return largest_of(kName, std::move(to), std::move(a), false);
}

Op largest_magnitude(Tensor to, Tensor a) {
  static const Name kName("largest_magnitude");
  return largest_of(kName, std::move(to), std::move(a), true);
}

// Selection by radix looks at 8 bits of every element in each pass.
Op top_k(Tensor values, Tensor indices, Tensor a) {
  TANDEM_REQUIRE(values && indices && a, "top_k without an operand");
  TANDEM_REQUIRE(values.dtype() == a.dtype() && indices.dtype() == DType::i64,
                 "top_k needs values of the operand's type and indices of i64");
  TANDEM_REQUIRE(values.element_count() == indices.element_count(),
                 "top_k of " + values.shape().text() + " values and " + indices.shape().text() + " indices");
  TANDEM_REQUIRE(values.element_count() <= a.element_count(),
                 "top_k of " + std::to_string(values.element_count()) + " of " + a.shape().text());
  const auto passes = static_cast<double>(size_of(a.dtype()));
  const OpCost cost{passes * count_of(a), passes * bytes_of(a) + bytes_of(values) + bytes_of(indices), a.dtype()};
  static const Name kName("top_k");
  return make(kName, cost, kernel::TopK{std::move(values), std::move(indices), std::move(a)});
}

Op custom(Name name, OpCost cost, std::vector<Tensor> operands, kernel::CustomFunctions functions) {
  TANDEM_REQUIRE(functions.cpu != nullptr, "custom '" + name.text() + "' without a function for CPUs");
  for (const Tensor& operand : operands) TANDEM_REQUIRE(operand, "custom '" + name.text() + "' without an operand");
  return make(
      name, cost,
      kernel::Custom{std::move(operands), std::make_shared<const kernel::CustomFunctions>(std::move(functions))});
}

Op host_function(Name name, OpCost cost, std::function<void()> call) {
  TANDEM_REQUIRE(call != nullptr, "host_function '" + name.text() + "' without a function");
  return make(name, cost, kernel::HostFunction{std::move(call)});
}

}  // namespace tandem::op

namespace tandem {

void drop_leases(Kernel& kernel, const Device& device) {
  for_each_operand(kernel, [&device](Tensor& tensor) {
    if (tensor.has_lease() && &tensor.device() == &device) tensor = tensor.without_lease();
  });
}

}  // namespace tandem
