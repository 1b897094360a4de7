// The kernels of layers beside plain loops in f64.
#include <gmock/gmock.h>

#include <limits>

#include "engine/kernels/exponential.h"
#include "tests/engine/layer_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::IsNan;

template <typename T>
class LayerKernels : public testing::Test {};
TYPED_TEST_SUITE(LayerKernels, FloatingTypes);

TEST(Exponential, IsThatOfTheCLibrary) {
  for (double x = -700; x < 700; x += 0.37) EXPECT_NEAR(exponential(x) / std::exp(x), 1, 5e-16) << x;
  for (float x = -87; x < 88; x += 0.037F) EXPECT_NEAR(exponential(x) / std::exp(double{x}), 1, 1.2e-7) << x;
}

TEST(Exponential, LimitsAreThoseOfTheCLibrary) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential(0.0F), 1);
  EXPECT_EQ(exponential(0.0), 1);
  EXPECT_EQ(exponential(-kInfinity), 0);
  EXPECT_EQ(exponential(-104.5F), 0);
  EXPECT_EQ(exponential(-103.0F), std::exp(-103.0F));  // the smallest number that is not 0
  EXPECT_EQ(exponential(88.9F), kInfinity);
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_EQ(exponential(-745.0), std::exp(-745.0));
  EXPECT_EQ(exponential(-800.0), 0);
  EXPECT_EQ(exponential(709.9), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))));
  EXPECT_TRUE(std::isnan(exponential(std::nan(""))));
}

// Small whole numbers: sums are exact in any order.
TEST(BatchedGemm, IsAProductForEachOfTheBatch) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto numbers = [&](Shape shape, int seed) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < shape.element_count(); ++i)
        values.push_back(static_cast<double>((i * 7 + seed) % 11));
      Tensor tensor = host_tensor(dtype, shape);
      set_values(tensor, values);
      return tensor;
    };
    for (const bool flips_a : {false, true}) {
      for (const bool flips_b : {false, true}) {
        const Tensor a = numbers(flips_a ? Shape{3, 5, 4} : Shape{3, 4, 5}, 1);
        const Tensor b = numbers(flips_b ? Shape{3, 6, 5} : Shape{3, 5, 6}, 2);
        const Tensor c = numbers({3, 4, 6}, 3), expected = numbers({3, 4, 6}, 3);
        execute(op::batched_gemm(c, a, b, flips_a, flips_b, 2, 0.5).kernel);
        for (std::int64_t i = 0; i < 3; ++i) {
          const auto one = [i](const Tensor& all) { return all.slice(i, 1).reshape({all.shape()[1], all.shape()[2]}); };
          execute(op::gemm(one(expected), one(a), one(b), flips_a, flips_b, 2, 0.5).kernel);
        }
        EXPECT_EQ(doubles_of(c), doubles_of(expected));
      }
    }
  }
}

TEST(BatchedGemm, ProductsWithoutTermsAreZero) {
  const Tensor c = varied(DType::f32, {2, 3, 4}, 1);
  execute(op::batched_gemm(c, varied(DType::f32, {2, 3, 0}, 1), varied(DType::f32, {2, 0, 4}, 1)).kernel);
  EXPECT_THAT(values_of<float>(c), testing::Each(0));
  const Tensor half = host_tensor(DType::bf16, {1, 1, 1});
  EXPECT_THAT([&] { execute(op::batched_gemm(half, half, half).kernel); },
              testing::ThrowsMessage<RunError>("batched_gemm has no implementation for bf16 on a CPU"));
}

std::vector<double> softmax_in_f64(const std::vector<double>& a, std::int64_t columns, op::SoftmaxSettings settings) {
  std::vector<double> result(a.size());
  for (std::int64_t row = 0; row * columns < static_cast<std::int64_t>(a.size()); ++row) {
    const auto seen =
        settings.queries == 0 ? columns : std::min(columns, settings.first_query + row % settings.queries + 1);
    double sum = 0;
    for (std::int64_t i = 0; i < seen; ++i)
      sum += std::exp(settings.scale * a[static_cast<std::size_t>(row * columns + i)]);
    for (std::int64_t i = 0; i < seen; ++i) {
      const auto at = static_cast<std::size_t>(row * columns + i);
      result[at] = std::exp(settings.scale * a[at]) / sum;
    }
  }
  return result;
}

TYPED_TEST(LayerKernels, SoftmaxCausalAndNot) {
  for (const std::int64_t columns : {1, 5, 16, 37}) {
    const Tensor a = varied(kDTypeOf<TypeParam>, {2, 6, columns}, 1);
    const Tensor to = host_tensor(kDTypeOf<TypeParam>, a.shape());
    for (const op::SoftmaxSettings settings :
         {op::SoftmaxSettings{}, {.scale = 0.5}, {.scale = 2, .queries = 6}, {.queries = 4, .first_query = 20}}) {
      const std::vector<double> expected = softmax_in_f64(doubles_of(a), columns, settings);
      execute(op::softmax(to, a, settings).kernel);
      expect_near<TypeParam>(to, expected, "softmax");
      const Tensor in_place = varied(kDTypeOf<TypeParam>, a.shape(), 1);
      execute(op::softmax(in_place, in_place, settings).kernel);
      EXPECT_EQ(doubles_of(in_place), doubles_of(to));
    }
  }
}

// Logits whose exponentials would overflow.
TYPED_TEST(LayerKernels, SoftmaxIsShiftedByTheLargest) {
  const Tensor a = host_tensor<TypeParam>({2, 2}, {1000, 1000, -60000, -50000});
  execute(op::softmax(a, a).kernel);
  EXPECT_THAT(values_of<TypeParam>(a), ElementsAre(0.5, 0.5, 0, 1));
}

TYPED_TEST(LayerKernels, SoftmaxOfNanAndInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = host_tensor<TypeParam>(
      {4, 3}, {1, kNaN, 2, 1, kInfinity, 2, -kInfinity, -kInfinity, -kInfinity, 3, -kInfinity, 3});
  const Tensor to = host_tensor(kDTypeOf<TypeParam>, {4, 3});
  execute(op::softmax(to, a).kernel);
  const std::vector<double> values = doubles_of(to);
  EXPECT_THAT(std::vector<double>(values.begin(), values.begin() + 9), testing::Each(IsNan()));
  EXPECT_THAT(std::vector<double>(values.begin() + 9, values.end()), ElementsAre(0.5, 0, 0.5));
  // What a query does not see is not looked at.
  const Tensor hidden = host_tensor<TypeParam>({2, 3}, {1, kNaN, kInfinity, 4, 4, kNaN});
  execute(op::softmax(hidden, hidden, {.queries = 2}).kernel);
  EXPECT_THAT(values_of<TypeParam>(hidden), ElementsAre(1, 0, 0, 0.5, 0.5, 0));
}

TYPED_TEST(LayerKernels, NormsAndTheirStatistics) {
  constexpr DType kType = kDTypeOf<TypeParam>, kWide = kType == DType::f64 ? DType::f64 : DType::f32;
  for (const std::int64_t columns : {1, 7, 40}) {
    for (const bool is_centered : {true, false}) {
      const Tensor a = varied(kType, {3, columns}, 1), scale = varied(kType, {columns}, 2);
      const Tensor shift = is_centered ? varied(kType, {columns}, 3) : Tensor();
      const Tensor to = host_tensor(kType, a.shape()), statistics = host_tensor(kWide, {3, 2});
      execute(op::normalize(to, statistics, a, scale, shift, 0.25).kernel);
      const std::vector<double> x = doubles_of(a), factors = doubles_of(scale);
      std::vector<double> expected, expected_statistics;
      for (std::size_t row = 0; row < 3; ++row) {
        const double* values = x.data() + row * factors.size();
        double mean = 0, squares = 0;
        for (std::size_t i = 0; is_centered && i < factors.size(); ++i)
          mean += values[i] / static_cast<double>(columns);
        for (std::size_t i = 0; i < factors.size(); ++i) squares += (values[i] - mean) * (values[i] - mean);
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(columns) + 0.25);
        expected_statistics.insert(expected_statistics.end(), {mean, inverse});
        for (std::size_t i = 0; i < factors.size(); ++i) {
          expected.push_back((values[i] - mean) * inverse * factors[i] + (is_centered ? doubles_of(shift)[i] : 0));
        }
      }
      expect_near<TypeParam>(to, expected, "normalize");
      expect_near<std::conditional_t<kType == DType::f64, double, float>>(statistics, expected_statistics,
                                                                          "statistics");
    }
  }
}

TYPED_TEST(LayerKernels, ActivationsAndTheirDerivatives) {
  constexpr DType kType = kDTypeOf<TypeParam>;
  std::vector<double> values{0, 1e-3, -1e-3, 9, -9, 30, -30, 100, -100, 6e4, -6e4};
  for (double x = -6; x < 6; x += 0.0625) values.push_back(x);  // more than a piece would need three of
  while (values.size() < 1100) values.push_back(values[values.size() - 190]);
  const Tensor a = host_tensor(kType, {static_cast<std::int64_t>(values.size())});
  set_values(a, values);
  const Tensor gradient = varied(kType, a.shape(), 5), to = host_tensor(kType, a.shape());
  for (const kernel::Activation activation : {kernel::Activation::gelu, kernel::Activation::silu}) {
    std::vector<double> expected, expected_gradient;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = doubles_of(a.flat_slice(static_cast<std::int64_t>(i), 1))[0];
      const double root = std::sqrt(2 / std::acos(-1.0)), tanh = std::tanh(root * (x + 0.044715 * x * x * x));
      const double logistic = 1 / (1 + std::exp(-x));
      const bool is_gelu = activation == kernel::Activation::gelu;
      expected.push_back(is_gelu ? 0.5 * x * (1 + tanh) : x * logistic);
      const double slope = is_gelu ? 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * x * x)
                                   : logistic + x * logistic * (1 - logistic);
      expected_gradient.push_back(doubles_of(gradient)[i] * slope);
    }
    execute(op::activate(activation, to, a).kernel);
    expect_near<TypeParam>(to, expected, "activate");
    execute(op::activation_gradient(activation, to, gradient, a).kernel);
    expect_near<TypeParam>(to, expected_gradient, "activation_gradient");
    const Tensor in_place = varied(kType, a.shape(), 5);
    execute(op::activation_gradient(activation, in_place, in_place, a).kernel);
    EXPECT_EQ(doubles_of(in_place), doubles_of(to));
  }
}

// Beyond the range of the cube, which is infinite.
TEST(ActivationKernels, AreTheirLimitsFarFromZero) {
  const Tensor a = host_tensor<float>({2}, {1e30F, -1e30F}), to = host_tensor(DType::f32, {2});
  const Tensor ones = host_tensor<float>({2}, {1, 1});
  for (const kernel::Activation activation : {kernel::Activation::gelu, kernel::Activation::silu}) {
    execute(op::activate(activation, to, a).kernel);
    EXPECT_THAT(values_of<float>(to), ElementsAre(1e30F, 0));
    execute(op::activation_gradient(activation, to, ones, a).kernel);
    EXPECT_THAT(values_of<float>(to), ElementsAre(1, 0));
  }
}

TYPED_TEST(LayerKernels, RotaryTurnsPairsByTheirPosition) {
  constexpr DType kType = kDTypeOf<TypeParam>;
  const op::RotarySettings settings{.width = 6, .positions = 3, .first = 10, .base = 100};
  const Tensor a = varied(kType, {7, 12}, 1), to = host_tensor(kType, {7, 12});
  execute(op::rotary(to, a, settings).kernel);
  const std::vector<double> x = doubles_of(a);
  std::vector<double> expected(x.size());
  for (std::size_t row = 0; row < 7; ++row) {
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t j = 0; j < 3; ++j) {
        const double angle = static_cast<double>(10 + row % 3) * std::pow(100, -2 * static_cast<double>(j) / 6);
        const std::size_t at = row * 12 + head * 6 + j;
        expected[at] = x[at] * std::cos(angle) - x[at + 3] * std::sin(angle);
        expected[at + 3] = x[at + 3] * std::cos(angle) + x[at] * std::sin(angle);
      }
    }
  }
  expect_near<TypeParam>(to, expected, "rotary");
}

TEST(Rotary, BackwardUndoesForwardInPlace) {
  for (const std::int64_t positions : {1, 4, 100}) {
    const Tensor a = varied(DType::f64, {9, 16}, 2);
    const std::vector<double> before = doubles_of(a);
    op::RotarySettings settings{.width = 8, .positions = positions, .first = 5};
    execute(op::rotary(a, a, settings).kernel);
    EXPECT_NE(doubles_of(a), before);
    settings.backward = true;
    execute(op::rotary(a, a, settings).kernel);
    expect_near<double>(a, before, "there and back");
  }
}

}  // namespace
}  // namespace tandem
