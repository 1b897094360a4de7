#include "engine/layer_ops.h"

#include <algorithm>
#include <array>

#include "engine/op_making.h"

namespace tandem::op {

using making::bytes_of;
using making::check_count;
using making::check_floating;
using making::check_like;
using making::check_matrix;
using making::columns_of;
using making::count_of;
using making::make;
using making::rows_of;

// 2 m n k flops for each product, as in gemm.
Op batched_gemm(Tensor c, Tensor a, Tensor b, bool transpose_a, bool transpose_b, double alpha, double beta) {
  check_floating({&c, &a, &b}, "batched_gemm");
  const Shape &of_a = a.shape(), &of_b = b.shape();
  TANDEM_REQUIRE(of_a.rank() == 3 && of_b.rank() == 3 && c.shape().rank() == 3,
                 "batched_gemm of other than three dimensions");
  const std::int64_t count = of_a[0], m = of_a[transpose_a ? 2 : 1], k = of_a[transpose_a ? 1 : 2];
  const std::int64_t n = of_b[transpose_b ? 1 : 2];
  TANDEM_REQUIRE(of_b[0] == count && of_b[transpose_b ? 2 : 1] == k && c.shape() == (Shape{count, m, n}),
                 "batched_gemm of " + of_a.text() + " and " + of_b.text() + " to " + c.shape().text());
  const OpCost cost{2 * count_of(c) * static_cast<double>(k),
                    bytes_of(a) + bytes_of(b) + bytes_of(c) * (beta == 0 ? 1 : 2), c.dtype()};
  static const Name kName("batched_gemm");
  return make(kName, cost,
              kernel::BatchedGemm{.c = std::move(c),
                                  .a = std::move(a),
                                  .b = std::move(b),
                                  .count = count,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .transpose_a = transpose_a,
                                  .transpose_b = transpose_b,
                                  .alpha = alpha,
                                  .beta = beta});
}

namespace {

// How many elements the rows of the first `queries` queries see, of `columns` each.
double seen_by(std::int64_t queries, std::int64_t columns, std::int64_t first) {
  const auto growing = static_cast<double>(std::clamp<std::int64_t>(columns - first, 0, queries));
  return growing * static_cast<double>(first) + growing * (growing + 1) / 2 +
         (static_cast<double>(queries) - growing) * static_cast<double>(columns);
}

double seen_of(const Tensor& a, std::int64_t columns, const SoftmaxSettings& settings) {
  if (settings.queries == 0) return count_of(a);
  const std::int64_t rows = rows_of(a, columns), rounds = rows / settings.queries;
  return static_cast<double>(rounds) * seen_by(settings.queries, columns, settings.first_query) +
         seen_by(rows % settings.queries, columns, settings.first_query);
}

}  // namespace

// Six flops for each element that is seen: the scale, the comparison, the shift, the exponential, its sum and the
// quotient. Others are only written.
Op softmax(Tensor to, Tensor a, SoftmaxSettings settings) {
  check_like(to, a, "softmax");
  check_floating(a, "softmax");
  TANDEM_REQUIRE(settings.queries >= 0 && settings.first_query >= 0, "softmax of queries below 0");
  const double seen = seen_of(a, columns_of(a, "softmax"), settings);
  const OpCost cost{kernel::kFlopsOfSoftmax * seen, seen * static_cast<double>(size_of(a.dtype())) + bytes_of(to),
                    to.dtype()};
  static const Name kName("softmax");
  return make(kName, cost, kernel::Softmax{std::move(to), std::move(a), settings});
}

Op softmax_gradient(Tensor to, Tensor gradient, Tensor output, double scale) {
  check_like(to, gradient, "softmax_gradient");
  check_like(to, output, "softmax_gradient");
  check_floating(to, "softmax_gradient");
  columns_of(output, "softmax_gradient");
  const OpCost cost{5 * count_of(to), 3 * bytes_of(to), to.dtype()};
  static const Name kName("softmax_gradient");
  return make(kName, cost, kernel::SoftmaxGradient{std::move(to), std::move(gradient), std::move(output), scale});
}

namespace {

void check_statistics(const Tensor& statistics, const Tensor& a, std::int64_t columns, const char* name) {
  TANDEM_REQUIRE(statistics, std::string(name) + " without an operand");
  TANDEM_REQUIRE(statistics.dtype() == (a.dtype() == DType::f64 ? DType::f64 : DType::f32),
                 std::string(name) + " needs statistics of f32, or of f64 for f64");
  check_count(statistics, 2 * rows_of(a, columns), (std::string(name) + "'s statistics").c_str());
}

}  // namespace

// The mean takes one flop for each element, the variance three, and the result four. Without a shift: none, two and
// two.
Op normalize(Tensor to, Tensor statistics, Tensor a, Tensor scale, Tensor shift, double epsilon) {
  check_like(to, a, "normalize");
  check_floating({&a, &scale}, "normalize");
  const std::int64_t columns = columns_of(a, "normalize");
  check_statistics(statistics, a, columns, "normalize");
  check_count(scale, columns, "normalize's scale");
  if (shift) check_like(shift, scale, "normalize's shift and scale");
  const OpCost cost{(shift ? 8 : 4) * count_of(a),
                    bytes_of(to) + bytes_of(statistics) + bytes_of(a) + bytes_of(scale) + bytes_of(shift), to.dtype()};
  static const Name kName("normalize");
  return make(kName, cost,
              kernel::Normalize{std::move(to), std::move(statistics), std::move(a), std::move(scale), std::move(shift),
                                epsilon});
}

// For each element: three flops for its normalised value and its scaled gradient, two for the sum of their product, one
// for that of the gradient, and three or four for the result.
Op normalize_gradient(Tensor to, Tensor gradient, Tensor a, Tensor statistics, Tensor scale, bool is_centered) {
  check_like(to, gradient, "normalize_gradient");
  check_like(to, a, "normalize_gradient");
  check_floating({&a, &scale}, "normalize_gradient");
  const std::int64_t columns = columns_of(a, "normalize_gradient");
  check_statistics(statistics, a, columns, "normalize_gradient");
  check_count(scale, columns, "normalize_gradient's scale");
  const OpCost cost{(is_centered ? 10 : 8) * count_of(a), 3 * bytes_of(to) + bytes_of(statistics) + bytes_of(scale),
                    to.dtype()};
  static const Name kName("normalize_gradient");
  return make(kName, cost,
              kernel::NormalizeGradient{std::move(to), std::move(gradient), std::move(a), std::move(statistics),
                                        std::move(scale), is_centered});
}

Op normalize_parameter_gradients(Tensor of_scale, Tensor of_shift, Tensor gradient, Tensor a, Tensor statistics,
                                 bool accumulates) {
  constexpr const char* kWhat = "normalize_parameter_gradients";
  check_like(gradient, a, kWhat);
  check_floating({&a, &of_scale}, kWhat);
  const std::int64_t columns = columns_of(a, kWhat);
  check_statistics(statistics, a, columns, kWhat);
  check_count(of_scale, columns, "normalize_parameter_gradients' scale");
  if (of_shift) check_like(of_shift, of_scale, "normalize_parameter_gradients' shift and scale");
  const OpCost cost{
      (of_shift ? 5 : 4) * count_of(a),
      2 * bytes_of(a) + bytes_of(statistics) + (accumulates ? 2 : 1) * (bytes_of(of_scale) + bytes_of(of_shift)),
      a.dtype()};
  static const Name kName("normalize_parameter_gradients");
  return make(kName, cost,
              kernel::NormalizeParameterGradients{std::move(of_scale), std::move(of_shift), std::move(gradient),
                                                  std::move(a), std::move(statistics), accumulates});
}

// gelu: five flops for the argument, an exponential, a sum, a quotient and a product. silu has no argument to compute.
Op activate(kernel::Activation activation, Tensor to, Tensor a) {
  static const std::array<Name, 2> kNames{"gelu", "silu"};
  check_like(to, a, "activate");
  check_floating(a, "activate");
  const OpCost cost{(activation == kernel::Activation::gelu ? 9 : 4) * count_of(a), 2 * bytes_of(to), to.dtype()};
  return make(kNames.at(static_cast<std::size_t>(activation)), cost,
              kernel::Activate{activation, std::move(to), std::move(a)});
}

// Six more flops for the derivative and its product with the gradient, and three for that of gelu's argument.
Op activation_gradient(kernel::Activation activation, Tensor to, Tensor gradient, Tensor a) {
  static const std::array<Name, 2> kNames{"gelu_gradient", "silu_gradient"};
  check_like(to, gradient, "activation_gradient");
  check_like(to, a, "activation_gradient");
  check_floating(a, "activation_gradient");
  const OpCost cost{(activation == kernel::Activation::gelu ? 18 : 10) * count_of(a), 3 * bytes_of(to), to.dtype()};
  return make(kNames.at(static_cast<std::size_t>(activation)), cost,
              kernel::ActivationGradient{activation, std::move(to), std::move(gradient), std::move(a)});
}

// The generator computes with integers.
Op dropout(Tensor to, Tensor a, double rate, std::uint64_t seed, const ElementNumbers& numbers) {
  check_like(to, a, "dropout");
  check_floating(a, "dropout");
  TANDEM_REQUIRE(rate >= 0 && rate < 1,
                 "dropout at a rate of " + std::to_string(rate) + ", must be from 0 and below 1");
  TANDEM_REQUIRE(numbers.first >= 0 && std::ranges::all_of(numbers.sizes, [](std::int64_t size) { return size >= 1; }),
                 "dropout of elements whose numbers have no digits");
  const OpCost cost{count_of(to), 2 * bytes_of(to), to.dtype()};
  static const Name kName("dropout");
  return make(kName, cost, kernel::Dropout{std::move(to), std::move(a), rate, seed, numbers});
}

// Six flops turn a pair of elements.
Op rotary(Tensor to, Tensor a, RotarySettings settings) {
  check_like(to, a, "rotary");
  check_floating(a, "rotary");
  check_matrix(a, "rotary");
  TANDEM_REQUIRE(settings.width > 0 && settings.width % 2 == 0 && a.shape()[1] % settings.width == 0,
                 "rotary of heads of " + std::to_string(settings.width) + " in " + a.shape().text());
  TANDEM_REQUIRE(settings.positions >= 1 && settings.first >= 0 && settings.base > 0, "rotary of no positions");
  const OpCost cost{3 * count_of(a), 2 * bytes_of(a), a.dtype()};
  static const Name kName("rotary");
  return make(kName, cost, kernel::Rotary{std::move(to), std::move(a), settings});
}

}  // namespace tandem::op
