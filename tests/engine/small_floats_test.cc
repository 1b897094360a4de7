// Numbers of eight and four bits: every code, rounding to the nearest one, scales, and the kernels that use them.
#include "engine/base/small_floats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/kernels/kernels.h"
#include "engine/layer_ops.h"
#include "tests/engine/host_tensor.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::NanSensitiveFloatEq;
using testing::Pointwise;
using testing::ThrowsMessage;

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();
constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();

// The bits of a format, as its specification gives them: value = 2^(exponent - bias) * 1.fraction.
struct Format {
  int exponent, fraction, bias;
};
double value_of(const Format& format, int code) {
  const int exponent = code >> format.fraction & ((1 << format.exponent) - 1);
  const int fraction = code & ((1 << format.fraction) - 1);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - format.bias - format.fraction)
                    : std::ldexp((1 << format.fraction) + fraction, exponent - format.bias - format.fraction);
  return code >> (format.exponent + format.fraction) == 0 ? magnitude : -magnitude;
}

// arXiv:2209.05433, table 1: the largest and the smallest numbers, normal and not, and what is none.
TEST(SmallFloats, HaveTheNumbersOfTheirSpecification) {
  EXPECT_EQ(decoded<SmallFloat::e4m3>(0b0'1111'110), 448);
  EXPECT_EQ(decoded<SmallFloat::e4m3>(0b0'0001'000), 0x1p-6F);
  EXPECT_EQ(decoded<SmallFloat::e4m3>(0b0'0000'111), 0.875F * 0x1p-6F);
  EXPECT_EQ(decoded<SmallFloat::e4m3>(0b0'0000'001), 0x1p-9F);
  EXPECT_TRUE(std::isnan(decoded<SmallFloat::e4m3>(0b0'1111'111)));
  EXPECT_TRUE(std::isnan(decoded<SmallFloat::e4m3>(0b1'1111'111)));
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b0'11110'11), 57344);
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b0'00001'00), 0x1p-14F);
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b0'00000'11), 0.75F * 0x1p-14F);
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b0'00000'01), 0x1p-16F);
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b0'11111'00), kFloatInfinity);
  EXPECT_EQ(decoded<SmallFloat::e5m2>(0b1'11111'00), -kFloatInfinity);
  for (const int nan : {0b0'11111'01, 0b0'11111'10, 0b0'11111'11, 0b1'11111'01, 0b1'11111'10, 0b1'11111'11}) {
    EXPECT_TRUE(std::isnan(decoded<SmallFloat::e5m2>(static_cast<std::uint8_t>(nan)))) << nan;
  }
  std::vector<float> of_four_bits;
  for (std::uint8_t code = 0; code < 16; ++code) of_four_bits.push_back(decoded<SmallFloat::e2m1>(code));
  EXPECT_THAT(of_four_bits, ElementsAre(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6));
}

// Every code is the number that its bits say, and the number's code.
template <SmallFloat kFormat>
void expect_all_codes(const Format& format, int codes) {
  for (int code = 0; code < codes; ++code) {
    const float number = decoded<kFormat>(static_cast<std::uint8_t>(code));
    if (!std::isfinite(number)) continue;
    EXPECT_EQ(number, value_of(format, code)) << code;
    EXPECT_EQ(std::signbit(number), code >= codes / 2) << code;
    EXPECT_EQ(encoded<kFormat>(number), code);
  }
}

constexpr Format kE4m3{4, 3, 7}, kE5m2{5, 2, 15}, kE2m1{2, 1, 1};

TEST(SmallFloats, EveryCodeIsTheNumberOfItsBits) {
  expect_all_codes<SmallFloat::e4m3>(kE4m3, 256);
  expect_all_codes<SmallFloat::e5m2>(kE5m2, 256);
  expect_all_codes<SmallFloat::e2m1>(kE2m1, 16);
}

// The nearest of all finite numbers of one sign; of two, the one with the even code. Exact in f64.
template <SmallFloat kFormat>
int nearest_code(const Format& format, float value) {
  int nearest = 0;
  const int largest = static_cast<int>(SmallFloatTraits<kFormat>::kLargestCode);
  for (int code = 1; code <= largest; ++code) {
    const double mine = std::abs(std::abs(double{value}) - value_of(format, code));
    const double best = std::abs(std::abs(double{value}) - value_of(format, nearest));
    if (mine < best || (mine == best && code % 2 == 0)) nearest = code;
  }
  return nearest + (std::signbit(value) ? largest + (kFormat == SmallFloat::e2m1   ? 1
                                                     : kFormat == SmallFloat::e4m3 ? 2
                                                                                   : 5)
                                        : 0);
}

// What lies between neighbours: the middle, and the next f32 on both sides of it; and numbers of all magnitudes.
template <SmallFloat kFormat>
void expect_nearest(const Format& format) {
  std::vector<float> values{0, 1e-45F, 1e-38F, 3.4e38F, kFloatInfinity};
  const auto largest = static_cast<int>(SmallFloatTraits<kFormat>::kLargestCode);
  for (int code = 0; code < largest; ++code) {
    const auto middle = static_cast<float>((value_of(format, code) + value_of(format, code + 1)) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kFloatInfinity)}) {
      values.push_back(value);
    }
  }
  const auto last = SmallFloatTraits<kFormat>::kLargest;
  for (const float value : {last * 1.01F, last * 1.2F, last * 100}) values.push_back(value);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> fraction(1, 2);
  for (int i = 0; i < 2000; ++i) values.push_back(std::ldexp(fraction(random), i % 50 - 25));
  for (const float value : values) {
    for (const float signed_value : {value, -value}) {
      const float finite = std::clamp(signed_value, -last, last);
      EXPECT_EQ(encoded<kFormat>(signed_value), nearest_code<kFormat>(format, finite)) << signed_value;
      const float either = nearest<kFormat>(signed_value), both = decoded<kFormat>(encoded<kFormat>(signed_value));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(either), std::bit_cast<std::uint32_t>(both)) << signed_value;
    }
  }
}

TEST(SmallFloats, RoundToTheNearestTiesToEvenAndSaturate) {
  expect_nearest<SmallFloat::e4m3>(kE4m3);
  expect_nearest<SmallFloat::e5m2>(kE5m2);
  expect_nearest<SmallFloat::e2m1>(kE2m1);
  EXPECT_EQ(decoded<SmallFloat::e4m3>(encoded<SmallFloat::e4m3>(17)), 16);    // between 16 and 18
  EXPECT_EQ(decoded<SmallFloat::e4m3>(encoded<SmallFloat::e4m3>(19)), 20);    // between 18 and 20
  EXPECT_EQ(decoded<SmallFloat::e2m1>(encoded<SmallFloat::e2m1>(5)), 4);      // between 4 and 6
  EXPECT_EQ(decoded<SmallFloat::e2m1>(encoded<SmallFloat::e2m1>(0.25F)), 0);  // between 0 and 0.5
  EXPECT_TRUE(std::isnan(decoded<SmallFloat::e4m3>(encoded<SmallFloat::e4m3>(kFloatNan))));
  EXPECT_TRUE(std::isnan(decoded<SmallFloat::e5m2>(encoded<SmallFloat::e5m2>(kFloatNan))));
}

TEST(SmallFloats, ScalesOfEightBitsArePowersOfTwoThatAreNotBelow) {
  for (int code = 0; code < 255; ++code) {
    const float scale = decoded_e8m0(static_cast<std::uint8_t>(code));
    EXPECT_EQ(scale, std::ldexp(1.0F, code - 127));
    EXPECT_EQ(encoded_e8m0(scale), code);
    EXPECT_EQ(encoded_e8m0(std::nextafter(scale, kFloatInfinity)), std::min(code + 1, 254));
  }
  EXPECT_TRUE(std::isnan(decoded_e8m0(255)));
  EXPECT_EQ(encoded_e8m0(0), 0);
  EXPECT_EQ(encoded_e8m0(3.4e38F), 254);
}

TEST(SmallFloats, ScalesPutTheLargestElementOnTheLargestNumber) {
  const SmallFloatScale exact = small_float_scale<SmallFloat::e4m3>(ScaleType::f32, 7, 0);
  EXPECT_EQ(exact.before, 64);
  EXPECT_EQ(rounded_to<SmallFloat::e4m3>(7, exact), 7);
  EXPECT_EQ(rounded_to<SmallFloat::e4m3>(-7.5F, exact), -7);  // a maximum of earlier steps
  const SmallFloatScale power = small_float_scale<SmallFloat::e4m3>(ScaleType::e8m0, 7.01F, 0);
  EXPECT_EQ(power.after, 0x1p-5F);  // 7.01 / 2^-6 were 449 and saturated
  for (const float none : {0.0F, kFloatInfinity}) {
    EXPECT_EQ((small_float_scale<SmallFloat::e5m2>(ScaleType::f32, none, 0).before), 1);
    EXPECT_EQ((small_float_scale<SmallFloat::e5m2>(ScaleType::e8m0, none, 0).before), 1);
  }
  EXPECT_EQ((small_float_scale<SmallFloat::e5m2>(ScaleType::f32, 1e-44F, 0).before), std::numeric_limits<float>::max());
  // For a tensor up to 2688 = 448 * 6 the second scale is 1. A block up to 12 has the scale 2.
  const SmallFloatScale two = small_float_scale<SmallFloat::e2m1>(ScaleType::e4m3, 12, 2688);
  EXPECT_EQ(two.before, 0.5F);
  EXPECT_EQ(two.after, 2);
  EXPECT_EQ(rounded_to<SmallFloat::e2m1>(5.1F, two), 6);  // 2.55: 3
  // A block that is too small beside its tensor becomes zeros.
  EXPECT_EQ((small_float_scale<SmallFloat::e2m1>(ScaleType::e4m3, 1e-6F, 2688).after), 0);
  EXPECT_TRUE(std::isnan(rounded_to<SmallFloat::e2m1>(kFloatNan, two)));
}

std::vector<float> quantised(const Shape& shape, const std::vector<float>& values, op::QuantiseSettings settings,
                             std::optional<float> maximum = {}) {
  const Tensor a = host_tensor<float>(shape, {values.begin(), values.end()});
  const Tensor to = host_tensor(DType::f32, shape);
  execute(op::quantise(to, a, settings, maximum ? host_tensor<float>({1}, {*maximum}) : Tensor()).kernel);
  const auto all = values_of<float>(to);
  execute(op::quantise(a, a, settings, maximum ? host_tensor<float>({1}, {*maximum}) : Tensor()).kernel);
  EXPECT_THAT(values_of<float>(a), Pointwise(NanSensitiveFloatEq(), all)) << "in place";
  return {all.begin(), all.end()};
}

// In e2m1 a block up to 6 stays whole, where it shares a scale with 768 it does not.
TEST(Quantise, BlocksHaveScalesOfTheirOwn) {
  const std::vector<float> values{1, 6, 768, 128, 2, 3, 6, 12};
  const SmallFloat format = SmallFloat::e2m1;
  EXPECT_THAT(quantised({2, 4}, values, {.format = format}), ElementsAre(0, 0, 768, 128, 0, 0, 0, 0));
  EXPECT_THAT(quantised({2, 4}, values, {.format = format, .rows = 1, .columns = 2}),
              ElementsAre(1, 6, 768, 128, 2, 3, 6, 12));
  EXPECT_THAT(quantised({2, 4}, values, {.format = format, .rows = 1}), ElementsAre(0, 0, 768, 128, 2, 3, 6, 12));
  EXPECT_THAT(quantised({2, 4}, values, {.format = format, .columns = 1}),
              ElementsAre(1, 6, 768, 128, 2, 3, 0, FloatEq(0.5F * 128 / 6)));
  // The last block of a row has one column.
  EXPECT_THAT(quantised({2, 4}, values, {.format = format, .rows = 1, .columns = 3}),
              ElementsAre(0, 0, 768, 128, 2, 3, 6, 12));
  // Each matrix by itself.
  EXPECT_THAT(quantised({2, 2, 2}, values, {.format = format}), ElementsAre(0, 0, 768, 128, 2, 3, 6, 12));
  EXPECT_THAT(quantised({2, 4}, values, {.format = format}, 6), ElementsAre(1, 6, 6, 6, 2, 3, 6, 6));
}

TEST(Quantise, HasTwoScalesForNumbersOfFourBits) {
  const op::QuantiseSettings settings{.format = SmallFloat::e2m1, .scale = ScaleType::e4m3, .rows = 1, .columns = 2};
  EXPECT_THAT(quantised({1, 6}, {2688, 448, 12, 5.1F, 6, 1}, settings, 2688), ElementsAre(2688, 448, 12, 6, 6, 1));
}

TEST(Quantise, KeepsNanAndPassesItOver) {
  const std::vector<float> all = quantised({1, 3}, {kFloatNan, 448, -1.07F}, {});
  EXPECT_TRUE(std::isnan(all[0]));
  EXPECT_EQ(all[1], 448);
  EXPECT_EQ(all[2], -1.125F);
}

TEST(Quantise, MaximaAreThoseOfMagnitudes) {
  const Tensor maximum = host_tensor<float>({1}, {2});
  execute(op::raise_maximum(maximum, host_tensor<float>({3}, {1, kFloatNan, -1.5F})).kernel);
  EXPECT_THAT(values_of<float>(maximum), ElementsAre(2));
  execute(op::raise_maximum(maximum, host_tensor<float>({3}, {1, kFloatNan, -2.5F})).kernel);
  EXPECT_THAT(values_of<float>(maximum), ElementsAre(2.5F));
}

TEST(Quantise, RefusesWhatItCannotDo) {
  const auto tensor = [](DType dtype, Shape shape) { return host_tensor(dtype, shape); };
  const Tensor a = tensor(DType::f32, {2, 3}), one = tensor(DType::f32, {1});
  const auto expect_refused = [](const std::function<void()>& make, const std::string& message) {
    EXPECT_THAT(make, ThrowsMessage<UsageError>(HasSubstr(message)));
  };
  expect_refused(
      [&] {
        op::quantise(tensor(DType::f64, {2, 3}), tensor(DType::f64, {2, 3}), {});
      },
      "quantise needs operands of f32");
  expect_refused([&] { op::quantise(one, one, {}); }, "quantise of [1], must have rows and columns");
  expect_refused([&] { op::quantise(a, a, {.rows = -1}); }, "blocks with sides below 0");
  expect_refused([&] { op::quantise(a, a, {.scale = ScaleType::e4m3}); }, "scales of e4m3 needs a maximum");
  expect_refused([&] { op::quantise(a, a, {.scale = ScaleType::e8m0}, one); }, "scales of e8m0 needs no maximum");
  expect_refused([&] { op::quantise(a, a, {}, a); }, "quantise's maximum of [2, 3], must have 1 elements");
  expect_refused([&] { op::raise_maximum(one, tensor(DType::i32, {2})); }, "raise_maximum needs operands of f32");
}

}  // namespace
}  // namespace tandem
