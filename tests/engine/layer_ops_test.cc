// What the functions of engine/layer_ops.h refuse, and what they say that an op costs.
#include "engine/layer_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/host_tensor.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor floats(Shape shape) {
  return host_tensor(DType::f32, shape);
}
Tensor doubles(Shape shape) {
  return host_tensor(DType::f64, shape);
}
Tensor numbers(Shape shape) {
  return host_tensor(DType::i32, shape);
}

void expect(const Op& op, const std::string& name, double flops, double bytes) {
  EXPECT_EQ(op.name, name);
  EXPECT_EQ(op.category, Category::compute);
  EXPECT_DOUBLE_EQ(op.cost.flops, flops) << name;
  EXPECT_DOUBLE_EQ(op.cost.bytes, bytes) << name;
}

TEST(LayerCosts, BatchedGemmIsThatOfItsProducts) {
  const Op op = op::batched_gemm(floats({3, 4, 6}), floats({3, 4, 5}), floats({3, 5, 6}));
  expect(op, "batched_gemm", 3 * 2 * 4 * 5 * 6, 4 * 3 * (4 * 5 + 5 * 6 + 4 * 6));
  expect(op::batched_gemm(floats({3, 4, 6}), floats({3, 5, 4}), floats({3, 6, 5}), true, true, 1, 1), "batched_gemm",
         720, 4 * 3 * (4 * 5 + 5 * 6 + 2 * 4 * 6));
  const auto& batch = std::get<kernel::BatchedGemm>(op.kernel);
  EXPECT_EQ(batch.count, 3);
  EXPECT_EQ(batch.m, 4);
  EXPECT_EQ(batch.n, 6);
  EXPECT_EQ(batch.k, 5);
}

// What a causal softmax does not look at is only written.
TEST(LayerCosts, SoftmaxReadsWhatItSees) {
  const Tensor a = floats({8, 4});
  expect(op::softmax(a, a), "softmax", 6 * 32, 2 * 128);
  expect(op::softmax(a, a, {.queries = 4}), "softmax", 6 * 20, 4 * 20 + 128);
  expect(op::softmax(a, a, {.queries = 4, .first_query = 2}), "softmax", 6 * 30, 4 * 30 + 128);
  expect(op::softmax(a, a, {.queries = 5}), "softmax", 6 * (14 + 6), 4 * 20 + 128);
  expect(op::softmax(a, a, {.queries = 8, .first_query = 9}), "softmax", 6 * 32, 2 * 128);
  expect(op::softmax_gradient(a, a, a), "softmax_gradient", 160, 384);
}

TEST(LayerCosts, CountElementsReadAndWritten) {
  const Tensor a = floats({10, 4}), row = floats({4}), statistics = floats({10, 2}), b = floats({10, 4});
  expect(op::normalize(b, statistics, a, row, row, 0), "normalize", 320, 2 * 160 + 80 + 32);
  expect(op::normalize(b, statistics, a, row, {}, 0), "normalize", 160, 2 * 160 + 80 + 16);
  expect(op::normalize_gradient(b, b, a, statistics, row, true), "normalize_gradient", 400, 3 * 160 + 80 + 16);
  expect(op::normalize_parameter_gradients(row, {}, b, a, statistics, false), "normalize_parameter_gradients", 160,
         2 * 160 + 80 + 16);
  expect(op::normalize_parameter_gradients(row, floats({4}), b, a, statistics, true), "normalize_parameter_gradients",
         200, 2 * 160 + 80 + 64);
  expect(op::activate(kernel::Activation::gelu, b, a), "gelu", 360, 320);
  expect(op::activate(kernel::Activation::silu, b, a), "silu", 160, 320);
  expect(op::activation_gradient(kernel::Activation::gelu, b, b, a), "gelu_gradient", 720, 480);
  expect(op::activation_gradient(kernel::Activation::silu, b, b, a), "silu_gradient", 400, 480);
  expect(op::dropout(b, a, 0.5, 1, {}), "dropout", 40, 320);
  expect(op::rotary(b, a, {.width = 4}), "rotary", 120, 320);
}

TEST(LayerCosts, OfRows) {
  const Tensor table = floats({7, 4}), rows = floats({10, 4}), indices = numbers({10}), of_rows = floats({10}),
               loss = floats({1});
  expect(op::gather_rows(rows, table, indices, 0), "gather_rows", 0, 320 + 40);
  expect(op::gather_rows(rows, table, indices, 0, true), "gather_rows", 40, 480 + 40);
  expect(op::add_rows(table, rows, indices, 0), "add_rows", 40, 480 + 40);
  expect(
      op::copy_strided(rows, table, {.sizes = {2, 1, 2, 4}, .to_strides = {8, 0, 4, 1}, .from_strides = {0, 0, 4, 1}}),
      "copy_strided", 0, 4 * (8 + 16));
  expect(op::row_maxima(of_rows, rows), "row_maxima", 40, 200);
  expect(op::exponential_sums(of_rows, of_rows, rows, of_rows, indices, 0), "exponential_sums", 120, 160 + 160);
  kernel::DividedCrossEntropy entropy{.loss = loss,
                                      .gradient = floats({10, 4}),
                                      .logits = rows,
                                      .maxima = of_rows,
                                      .sums = of_rows,
                                      .targets = of_rows,
                                      .labels = indices};
  expect(op::divided_cross_entropy(entropy), "divided_cross_entropy", 150, 4 + 320 + 4 * 40);
  entropy.gradient = {};
  expect(op::divided_cross_entropy(entropy), "divided_cross_entropy", 30, 84);
  const Tensor weights = floats({10, 3}), experts = floats({3, 10, 4});
  expect(op::largest_of_rows(floats({10, 3}), weights, 2), "largest_of_rows", 30, 240);
  expect(op::dispatch_rows(experts, rows, weights, false), "dispatch_rows", 0, 480 + 160 + 120);
  expect(op::dispatch_rows(experts, rows, weights, true), "dispatch_rows", 120, 760);
  expect(op::combine_rows(rows, experts, weights, true), "combine_rows", 240, 760);
  expect(op::expert_weight_gradients(floats({10, 3}), experts, rows, weights), "expert_weight_gradients", 240, 880);
}

TEST(LayerCosts, OfSmallFloats) {
  const Tensor a = floats({10, 4}), one = floats({1});
  expect(op::raise_maximum(one, a), "raise_maximum", 40, 160 + 8);
  expect(op::quantise(a, a, {}, one), "quantise", 80, 320 + 4);
  expect(op::quantise(a, a, {.scale = ScaleType::e8m0, .columns = 2}), "quantise", 120, 320);
}

void expect_refused(const std::function<void()>& make, const std::string& message) {
  EXPECT_THAT(make, ThrowsMessage<UsageError>(HasSubstr(message)));
}

TEST(LayerOps, RefuseMatricesThatDoNotFit) {
  const Tensor c = floats({2, 4, 6});
  expect_refused(
      [&] {
        op::batched_gemm(c, floats({2, 4, 5}), floats({2, 6, 5}));
      },
      "batched_gemm of [2, 4, 5] and [2, 6, 5] to [2, 4, 6]");
  expect_refused([&] { op::batched_gemm(c, floats({2, 4, 5}), floats({3, 5, 6})); }, "batched_gemm of");
  expect_refused([&] { op::batched_gemm(c, floats({4, 5}), floats({2, 5, 6})); }, "three dimensions");
  expect_refused([&] { op::batched_gemm(c, doubles({2, 4, 5}), floats({2, 5, 6})); }, "different element types");
  expect_refused(
      [] {
        op::batched_gemm(numbers({1, 1, 1}), numbers({1, 1, 1}), numbers({1, 1, 1}));
      },
      "batched_gemm of integers");
  expect_refused([&] { op::batched_gemm(c, Tensor(), c); }, "without an operand");
}

TEST(LayerOps, RefuseRowsThatDoNotFit) {
  const Tensor a = floats({3, 4}), row = floats({4}), statistics = floats({3, 2});
  expect_refused([&] { op::softmax(floats({4, 4}), a); }, "softmax of [4, 4] and [3, 4]");
  expect_refused([&] { op::softmax(a, a, {.queries = -1}); }, "queries below 0");
  expect_refused([] { op::softmax(numbers({2, 2}), numbers({2, 2})); }, "softmax of integers");
  expect_refused([] { op::softmax(floats({}), floats({})); }, "softmax of a scalar");
  expect_refused([&] { op::softmax_gradient(a, a, doubles({3, 4})); }, "different element types");
  expect_refused([&] { op::normalize(a, doubles({3, 2}), a, row, row, 0); }, "statistics of f32");
  expect_refused([&] { op::normalize(a, floats({4, 2}), a, row, row, 0); }, "must have 6 elements");
  expect_refused([&] { op::normalize(a, statistics, a, floats({3}), {}, 0); }, "normalize's scale of [3]");
  expect_refused([&] { op::normalize(a, statistics, a, row, floats({3}), 0); }, "normalize's shift and scale");
  expect_refused([&] { op::normalize_gradient(a, a, floats({4, 4}), statistics, row, true); }, "of [3, 4] and [4, 4]");
  expect_refused([&] { op::normalize_parameter_gradients(floats({3}), {}, a, a, statistics, true); }, "must have 4");
  expect_refused([&] { op::activate(kernel::Activation::gelu, a, floats({3})); }, "activate of");
  expect_refused([&] { op::activation_gradient(kernel::Activation::silu, a, a, floats({3})); },
                 "activation_gradient of");
  expect_refused([&] { op::rotary(a, a, {.width = 3}); }, "rotary of heads of 3 in [3, 4]");
  expect_refused([&] { op::rotary(a, a, {.width = 4, .positions = 0}); }, "no positions");
}

TEST(LayerOps, RefuseWhatDropsEverythingOrHasNoNumber) {
  const Tensor a = floats({3});
  expect_refused([&] { op::dropout(a, a, 1, 0, {}); }, "dropout at a rate of 1");
  expect_refused([&] { op::dropout(a, a, -0.1, 0, {}); }, "must be from 0 and below 1");
  expect_refused([&] { op::dropout(a, a, 0.5, 0, {.sizes = {1, 0, 1, 1}}); }, "no digits");
  expect_refused([&] { op::dropout(a, a, 0.5, 0, {.first = -1}); }, "no digits");
}

TEST(LayerOps, RefuseIndicesAndPlacesOutside) {
  const Tensor table = floats({3, 4}), rows = floats({2, 4});
  expect_refused([&] { op::gather_rows(rows, table, numbers({3}), 0); }, "must have 12 elements");
  expect_refused([&] { op::gather_rows(rows, table, host_tensor(DType::i64, {2}), 0); }, "one i32 number a row");
  expect_refused([&] { op::add_rows(table, doubles({2, 4}), numbers({2}), 0); }, "different element types");
  expect_refused([&] { op::add_rows(floats({12}), rows, numbers({2}), 0); }, "must be a matrix");
  expect_refused(
      [&] {
        op::copy_strided(rows, table, {.sizes = {1, 1, 1, 9}, .to_strides = {0, 0, 0, 1}});
      },
      "outside");
  expect_refused([&] { op::copy_strided(rows, table, {.from_first = -1}); }, "outside");
  expect_refused([&] { op::copy_strided(rows, table, {.sizes = {1, 1, 2, 1}}); }, "one place several times");
  expect_refused([&] { op::copy_strided(rows, doubles({8}), {}); }, "one element type");
}

TEST(LayerOps, RefuseEntropiesAndExpertsThatDoNotFit) {
  const Tensor logits = floats({2, 4}), of_rows = floats({2}), labels = numbers({2});
  expect_refused([&] { op::row_maxima(floats({3}), logits); }, "row_maxima of [3], must have 2 elements");
  expect_refused([&] { op::exponential_sums(of_rows, of_rows, logits, of_rows, numbers({3}), 0); },
                 "one i32 number a row");
  kernel::DividedCrossEntropy entropy{
      .logits = logits, .maxima = of_rows, .sums = of_rows, .targets = of_rows, .labels = labels};
  expect_refused([&] { op::divided_cross_entropy(entropy); }, "without a result");
  entropy.loss = doubles({1});
  expect_refused([&] { op::divided_cross_entropy(entropy); }, "a loss of the logits' element type");
  expect_refused([&] { op::largest_of_rows(logits, logits, 5); }, "largest_of_rows of 5");
  expect_refused([&] { op::dispatch_rows(floats({3, 2, 4}), logits, floats({3, 3}), false); }, "by weights [3, 3]");
  expect_refused([&] { op::combine_rows(logits, floats({2, 3, 4}), floats({2, 3}), false); }, "must be [3, 2, 4]");
  expect_refused(
      [&] {
        op::expert_weight_gradients(floats({2, 2}), floats({3, 2, 4}), logits, floats({2, 3}));
      },
      "expert_weight_gradients of [2, 2] and [2, 3]");
}

}  // namespace
}  // namespace tandem
