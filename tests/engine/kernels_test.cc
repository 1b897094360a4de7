#include "engine/kernels/kernels.h"
#include "engine/kernels/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/engine/host_tensor.h"

namespace tandem {
namespace {

using testing::ElementsAre;

// Small whole numbers: sums and products are exact in every type, in any order.
template <typename T>
std::vector<T> whole_numbers(std::int64_t count, int seed) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>((i * 7 + seed * 5) % 11));
  return values;
}

template <typename T>
class ArithmeticKernels : public testing::Test {};
using ElementTypes = testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(ArithmeticKernels, ElementTypes);

TYPED_TEST(ArithmeticKernels, ElementwiseMatchesTheScalarOperation) {
  using T = TypeParam;
  using kernel::Binary;
  const std::pair<Binary, std::function<T(T, T)>> cases[] = {
      {Binary::add, [](T a, T b) { return static_cast<T>(a + b); }},
      {Binary::subtract, [](T a, T b) { return static_cast<T>(a - b); }},
      {Binary::multiply, [](T a, T b) { return static_cast<T>(a * b); }},
      {Binary::divide, [](T a, T b) { return static_cast<T>(a / b); }},
      {Binary::maximum, [](T a, T b) { return std::max(a, b); }},
      {Binary::minimum, [](T a, T b) { return std::min(a, b); }}};
  for (const std::int64_t count : {0, 1, 7, 100}) {
    const std::vector<T> a = whole_numbers<T>(count, 1);
    std::vector<T> b = whole_numbers<T>(count, 2);
    for (T& value : b) value = static_cast<T>(value + 1);
    for (const auto& [operation, scalar] : cases) {
      const Tensor to = host_tensor(kDTypeOf<T>, {count});
      execute(op::elementwise(operation, to, host_tensor<T>({count}, a), host_tensor<T>({count}, b)).kernel);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(to.values<T>()[at], scalar(a[at], b[at])) << "operation " << static_cast<int>(operation);
      }
    }
  }
}

TYPED_TEST(ArithmeticKernels, ElementwiseWorksInPlace) {
  using T = TypeParam;
  const Tensor a = host_tensor<T>({3}, {1, 2, 3});
  execute(op::elementwise(kernel::Binary::multiply, a, a, a).kernel);
  EXPECT_THAT(values_of<T>(a), ElementsAre(1, 4, 9));
}

TYPED_TEST(ArithmeticKernels, FillSetsEveryElement) {
  const Tensor to = host_tensor(kDTypeOf<TypeParam>, {5});
  execute(op::fill(to, 7).kernel);
  EXPECT_THAT(values_of<TypeParam>(to), testing::Each(TypeParam{7}));
}

TYPED_TEST(ArithmeticKernels, ScaleAddScalesAccumulatesAndMixes) {
  using T = TypeParam;
  const Tensor a = host_tensor<T>({3}, {1, 2, 3});
  const Tensor to = host_tensor<T>({3}, {10, 20, 30});
  execute(op::scale_add(to, a, 2, 1).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(12, 24, 36));
  execute(op::scale_add(to, a, 1, 2).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(25, 50, 75));
  execute(op::scale_add(to, a, 5, 0).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(5, 10, 15));
}

TYPED_TEST(ArithmeticKernels, AddBiasReachesEveryRow) {
  using T = TypeParam;
  const Tensor to = host_tensor<T>({2, 3}, {1, 2, 3, 4, 5, 6});
  execute(op::add_bias(to, host_tensor<T>({3}, {10, 20, 30})).kernel);
  EXPECT_THAT(values_of<T>(to), ElementsAre(11, 22, 33, 14, 25, 36));
}

TYPED_TEST(ArithmeticKernels, SumAxisSumsTheOneAxis) {
  using T = TypeParam;
  const std::vector<T> a = whole_numbers<T>(4 * 37 * 3, 3);
  const auto expect_sums = [&](Shape shape, int axis) {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t length = shape[axis];
    std::vector<T> expected(a.size() / static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.size()); ++i) {
      T& sum = expected[static_cast<std::size_t>(i / (length * inner) * inner + i % inner)];
      sum = static_cast<T>(sum + a[static_cast<std::size_t>(i)]);
    }
    const Tensor to = host_tensor(kDTypeOf<T>, {static_cast<std::int64_t>(expected.size())});
    execute(op::sum_axis(to, host_tensor<T>(shape, a), axis).kernel);
    EXPECT_EQ(values_of<T>(to), expected) << shape.text() << " over " << axis;
  };
  for (int axis = 0; axis < 3; ++axis) expect_sums({4, 37, 3}, axis);
  expect_sums({12, 37}, 1);
  expect_sums({444}, 0);
}

TYPED_TEST(ArithmeticKernels, ReluKeepsWhatIsPositive) {
  using T = TypeParam;
  const Tensor a = host_tensor<T>({4}, {static_cast<T>(-2), 0, 1, 2});
  const Tensor gradient = host_tensor<T>({4}, {5, 6, 7, 8});
  execute(op::relu(a, a).kernel);
  const T first = std::is_signed_v<T> ? T{0} : static_cast<T>(-2);
  EXPECT_THAT(values_of<T>(a), ElementsAre(first, 0, 1, 2));
  execute(op::relu_gradient(gradient, gradient, a).kernel);
  EXPECT_THAT(values_of<T>(gradient), ElementsAre(first > 0 ? 5 : 0, 0, 7, 8));
}

TEST(SquareRoot, IsThatOfIeee754WithItsSummands) {
  const Tensor a = host_tensor<double>({3}, {0, 4, 2});
  const Tensor to = host_tensor(DType::f64, {3});
  execute(op::square_root(to, a).kernel);
  EXPECT_THAT(values_of<double>(to), ElementsAre(0, 2, std::sqrt(2.0)));
  execute(op::square_root(a, a, 5, 0.25).kernel);
  EXPECT_THAT(values_of<double>(a), ElementsAre(std::sqrt(5.0) + 0.25, 3.25, std::sqrt(7.0) + 0.25));
  EXPECT_THROW(op::square_root(host_tensor(DType::i32, {1}), host_tensor(DType::i32, {1})), UsageError);
}

TYPED_TEST(ArithmeticKernels, AccumulateReduces) {
  using T = TypeParam;
  for (const Reduction reduction : {Reduction::sum, Reduction::maximum, Reduction::minimum}) {
    std::vector<T> to = whole_numbers<T>(33, 1);
    const std::vector<T> from = whole_numbers<T>(33, 4);
    std::vector<T> expected = to;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (reduction == Reduction::sum) expected[i] = static_cast<T>(to[i] + from[i]);
      if (reduction == Reduction::maximum) expected[i] = std::max(to[i], from[i]);
      if (reduction == Reduction::minimum) expected[i] = std::min(to[i], from[i]);
    }
    accumulate(kDTypeOf<T>, reduction, to.data(), from.data(), 33);
    EXPECT_EQ(to, expected);
  }
}

template <typename T>
class Gemm : public testing::Test {};
using GemmTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, GemmTypes);

TYPED_TEST(Gemm, MatchesTheTripleLoop) {
  using T = TypeParam;
  constexpr std::int64_t m = 5, n = 7, k = 9;
  const std::vector<T> a = whole_numbers<T>(m * k, 1), b = whole_numbers<T>(k * n, 2), c = whole_numbers<T>(m * n, 3);
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const double beta : {0.0, 1.0, 2.0}) {
        const Tensor to = host_tensor<T>({m, n}, c);
        execute(op::gemm(to, host_tensor<T>(ta ? Shape{k, m} : Shape{m, k}, a),
                         host_tensor<T>(tb ? Shape{n, k} : Shape{k, n}, b), ta, tb, 3, beta)
                    .kernel);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            T sum = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              sum += a[static_cast<std::size_t>(ta ? l * m + i : i * k + l)] *
                     b[static_cast<std::size_t>(tb ? j * k + l : l * n + j)];
            }
            const auto at = static_cast<std::size_t>(i * n + j);
            ASSERT_EQ(to.values<T>()[at], 3 * sum + static_cast<T>(beta) * c[at]);
          }
        }
      }
    }
  }
}

TYPED_TEST(Gemm, IsRepeatedOnTheSameOperands) {
  using T = TypeParam;
  const Tensor to = host_tensor<T>({1, 1}, {1});
  Op op = op::gemm(to, host_tensor<T>({1, 2}, {2, 3}), host_tensor<T>({2, 1}, {4, 5}), false, false, 1, 1);
  std::get<kernel::Gemm>(op.kernel).repeats = 3;
  execute(op.kernel);
  EXPECT_EQ(to.values<T>()[0], 1 + 3 * (2 * 4 + 3 * 5));
}

TYPED_TEST(Gemm, TakesEmptyMatrices) {
  using T = TypeParam;
  const auto empty = [](Shape shape) { return host_tensor(kDTypeOf<T>, shape); };
  execute(op::gemm(empty({0, 3}), empty({0, 2}), empty({2, 3})).kernel);
  const Tensor c = host_tensor<T>({1, 2}, {4, 5});
  execute(op::gemm(c, empty({1, 0}), empty({0, 2})).kernel);
  EXPECT_THAT(values_of<T>(c), ElementsAre(0, 0)) << "the sum of no products";
}

TEST(ScaleAdd, DoesNotReadWhatItOverwrites) {
  const Tensor to = host_tensor<float>({1}, {std::numeric_limits<float>::quiet_NaN()});
  execute(op::scale_add(to, host_tensor<float>({1}, {2}), 3, 0).kernel);
  EXPECT_EQ(to.values<float>()[0], 6);
}

TEST(Integers, WrapAroundAndRefuseDivisionByZero) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  const Tensor a = host_tensor<std::int32_t>({2}, {kMin, 7});
  const Tensor to = host_tensor(DType::i32, {2});
  execute(op::elementwise(kernel::Binary::divide, to, a, host_tensor<std::int32_t>({2}, {-1, -1})).kernel);
  EXPECT_THAT(values_of<std::int32_t>(to), ElementsAre(kMin, -7));
  execute(op::elementwise(kernel::Binary::add, to, a, a).kernel);
  EXPECT_THAT(values_of<std::int32_t>(to), ElementsAre(0, 14));
  EXPECT_THAT(
      [&] {
        execute(op::elementwise(kernel::Binary::divide, to, a, host_tensor<std::int32_t>({2}, {1, 0})).kernel);
      },
      testing::ThrowsMessage<RunError>("an integer is divided by zero"));
}

TEST(Cast, TruncatesAndStaysWithinTheType) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor a = host_tensor<float>({6}, {2.9F, -2.9F, infinity, -infinity, std::nanf(""), 2147483648.0F});
  const Tensor i32 = host_tensor(DType::i32, {6});
  execute(op::cast(i32, a).kernel);
  EXPECT_THAT(values_of<std::int32_t>(i32),
              ElementsAre(2, -2, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(), 0,
                          std::numeric_limits<std::int32_t>::max()));
  const Tensor u8 = host_tensor(DType::u8, {6});
  execute(op::cast(u8, a).kernel);
  EXPECT_THAT(values_of<std::uint8_t>(u8), ElementsAre(2, 0, 255, 0, 0, 255));
  const Tensor f64 = host_tensor(DType::f64, {2});
  execute(op::cast(f64, host_tensor<std::int64_t>({2}, {-3, 4})).kernel);
  EXPECT_THAT(values_of<double>(f64), ElementsAre(-3, 4));
}

TEST(SoftmaxCrossEntropy, MatchesTheDefinition) {
  const std::vector<float> logits{1, 2, 3, 0, 0, 0};
  const Tensor loss = host_tensor(DType::f32, {1}), gradient = host_tensor(DType::f32, {2, 3});
  const Tensor correct = host_tensor(DType::i32, {1});
  execute(op::softmax_cross_entropy({.loss = loss,
                                     .gradient = gradient,
                                     .correct = correct,
                                     .logits = host_tensor<float>({2, 3}, logits),
                                     .labels = host_tensor<std::int32_t>({2}, {2, 1}),
                                     .loss_scale = 0.5,
                                     .gradient_scale = 0.25})
              .kernel);
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(loss.values<float>()[0], 0.5 * (std::log(sum) - 3 + std::log(3.0)), 1e-6);
  const std::vector<float> actual = values_of<float>(gradient);
  EXPECT_NEAR(actual[0], 0.25 * std::exp(1.0) / sum, 1e-7);
  EXPECT_NEAR(actual[2], 0.25 * (std::exp(3.0) / sum - 1), 1e-7);
  EXPECT_NEAR(actual[4], 0.25 * (1.0 / 3 - 1), 1e-7);
  EXPECT_EQ(correct.values<std::int32_t>()[0], 1) << "ties go to the first class";
}

TEST(SoftmaxCrossEntropy, IsStableForHugeLogits) {
  const Tensor loss = host_tensor(DType::f32, {1});
  const Tensor logits = host_tensor<float>({1, 2}, {1e30F, -1e30F});
  const Tensor labels = host_tensor<std::int32_t>({1}, {0});
  execute(
      op::softmax_cross_entropy({.loss = loss, .gradient = logits, .correct = {}, .logits = logits, .labels = labels})
          .kernel);
  EXPECT_EQ(loss.values<float>()[0], 0);
  EXPECT_THAT(values_of<float>(logits), ElementsAre(0, 0)) << "the gradient may take the logits' place";
}

TEST(SoftmaxCrossEntropy, RefusesLabelsThatAreNoClass) {
  const Op op = op::softmax_cross_entropy({.loss = host_tensor(DType::f32, {1}),
                                           .gradient = {},
                                           .correct = {},
                                           .logits = host_tensor<float>({2, 2}, {0, 0, 0, 0}),
                                           .labels = host_tensor<std::int32_t>({2}, {1, 2})});
  EXPECT_THAT([&] { execute(op.kernel); }, testing::ThrowsMessage<RunError>("row 1 has label 2, must be from 0 to 1"));
}

TEST(Kernels, NameElementTypesWithoutArithmetic) {
  const Tensor rate = host_tensor(DType::tf32, {2});
  EXPECT_THAT([&] { execute(op::relu(rate, rate).kernel); },
              testing::ThrowsMessage<RunError>("relu has no implementation for tf32 on a CPU"));
}

TEST(Kernels, HostFunctionIsCalled) {
  int calls = 0;
  execute(op::host_function("count", {}, [&] { ++calls; }).kernel);
  EXPECT_EQ(calls, 1);
}

TEST(Kernels, DescribeTheirBlas) {
  EXPECT_THAT(blas_description(), testing::AllOf(testing::HasSubstr("OpenBLAS"), testing::HasSubstr("1 thread")));
}

}  // namespace
}  // namespace tandem
