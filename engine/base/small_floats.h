// Floating-point numbers of eight and four bits, and the scales with which tensors are stored in them: functions for
// hosts and GPUs.
//
// e4m3, e5m2: Micikevicius and others, "FP8 Formats for Deep Learning", arXiv:2209.05433, table 1. e2m1 and the scale
// e8m0: OCP Microscaling Formats (MX) Specification 1.0, sections 5.3 and 5.4. Conversions round to the nearest number,
// ties to even, and saturate.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "engine/base/small_float_types.h"

namespace tandem {

template <SmallFloat>
struct SmallFloatTraits;
template <>
struct SmallFloatTraits<SmallFloat::e4m3> {
  static constexpr int kFraction = 3, kBias = 7, kSign = 7;  // bits of the fraction, bias, place of the sign
  static constexpr std::uint32_t kLargestCode = 0x7e, kNan = 0x7f;
  static constexpr float kLargest = 448;
};
template <>
struct SmallFloatTraits<SmallFloat::e5m2> {
  static constexpr int kFraction = 2, kBias = 15, kSign = 7;
  static constexpr std::uint32_t kLargestCode = 0x7b, kNan = 0x7f;
  static constexpr float kLargest = 57344;
};
template <>
struct SmallFloatTraits<SmallFloat::e2m1> {
  static constexpr int kFraction = 1, kBias = 1, kSign = 3;
  static constexpr std::uint32_t kLargestCode = 0x7, kNan = 0x7;  // it has none
  static constexpr float kLargest = 6;
};

// Calls function.operator()<format>().
template <typename Function>
constexpr void with_small_float(SmallFloat format, Function&& function) {
  switch (format) {
    case SmallFloat::e4m3:
      return function.template operator()<SmallFloat::e4m3>();
    case SmallFloat::e5m2:
      return function.template operator()<SmallFloat::e5m2>();
    case SmallFloat::e2m1:
      return function.template operator()<SmallFloat::e2m1>();
  }
}

// Returns the code of the nearest number. NaN has a code of its own where the format has NaN, and is the largest number
// elsewhere.
template <SmallFloat kFormat>
constexpr std::uint8_t encoded(float value) {
  using Traits = SmallFloatTraits<kFormat>;
  constexpr int kDropped = 23 - Traits::kFraction;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU, sign = bits >> 31 << Traits::kSign;
  if (magnitude > 0x7f800000U) return static_cast<std::uint8_t>(sign | Traits::kNan);
  std::uint32_t code = 0;
  if (magnitude < static_cast<std::uint32_t>(128 - Traits::kBias) << 23) {
    // In units of the least number; the code after the last subnormal number is that of the first normal one.
    constexpr auto kUnits = static_cast<float>(1U << (Traits::kBias - 1 + Traits::kFraction));
    const float units = std::bit_cast<float>(magnitude) * kUnits;
    code = static_cast<std::uint32_t>(units);
    const float rest = units - static_cast<float>(code);
    if (rest > 0.5F || (rest == 0.5F && code % 2 == 1)) ++code;
  } else {
    const std::uint32_t rounded = magnitude + (1U << (kDropped - 1)) - 1 + (magnitude >> kDropped & 1U);
    code = (rounded >> kDropped) - (static_cast<std::uint32_t>(127 - Traits::kBias) << Traits::kFraction);
  }
  return static_cast<std::uint8_t>(sign | (code < Traits::kLargestCode ? code : Traits::kLargestCode));
}

template <SmallFloat kFormat>
constexpr float decoded(std::uint8_t code) {
  using Traits = SmallFloatTraits<kFormat>;
  const std::uint32_t magnitude = code & ((1U << Traits::kSign) - 1), sign = code >> Traits::kSign & 1U;
  const std::uint32_t exponent = magnitude >> Traits::kFraction, fraction = magnitude & ((1U << Traits::kFraction) - 1);
  std::uint32_t bits = 0;
  if (magnitude > Traits::kLargestCode) {
    bits = kFormat == SmallFloat::e5m2 && fraction == 0 ? 0x7f800000U : 0x7fc00000U;
  } else if (exponent == 0) {
    constexpr float kUnit = 1.0F / static_cast<float>(1U << (Traits::kBias - 1 + Traits::kFraction));
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * kUnit);
  } else {
    bits = (exponent + static_cast<std::uint32_t>(127 - Traits::kBias)) << 23 | fraction << (23 - Traits::kFraction);
  }
  return std::bit_cast<float>(sign << 31 | bits);
}

// The scale e8m0: powers of two from 2^-127 to 2^127; 255 is NaN. Returns the least one that is not below `value`, from
// 0. The specification's own example of a conversion takes the largest one that is not above it, so that numbers may
// saturate; libraries round up (Mishra and others, "Recipes for Pre-training LLMs with MXFP8", arXiv:2506.08027).
constexpr std::uint8_t encoded_e8m0(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23, fraction = bits & 0x7fffffU;
  if (exponent == 0) return fraction > 0x400000U ? 1 : 0;
  const std::uint32_t code = exponent + (fraction > 0 ? 1U : 0U);
  return static_cast<std::uint8_t>(code < 254 ? code : 254);
}

constexpr float decoded_e8m0(std::uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x400000U : static_cast<std::uint32_t>(code) << 23);
}

// What elements are multiplied by before they are rounded, and afterwards.
struct SmallFloatScale {
  float before = 1, after = 1;
};

// Returns largest / maximum: 1 for a maximum of 0 or infinity, and at most what f32 has.
constexpr float scale_to(float largest, float maximum) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(maximum > 0) || maximum > kMost) return 1;
  const float scale = largest / maximum;
  return scale < kMost ? scale : kMost;
}

// `block`: the largest magnitude of the block, `tensor`: that of the tensor, for scales in e4m3.
template <SmallFloat kFormat>
constexpr SmallFloatScale small_float_scale(ScaleType type, float block, float tensor) {
  constexpr float kLargest = SmallFloatTraits<kFormat>::kLargest;
  if (type == ScaleType::e8m0) {
    if (!(block > 0) || block > std::numeric_limits<float>::max()) return {};
    const float after = decoded_e8m0(encoded_e8m0(block / kLargest));
    return {1 / after, after};
  }
  if (type == ScaleType::e4m3) {
    const float of_tensor = scale_to(SmallFloatTraits<SmallFloat::e4m3>::kLargest * kLargest, tensor);
    const float of_block = decoded<SmallFloat::e4m3>(encoded<SmallFloat::e4m3>(block / kLargest * of_tensor));
    if (of_block == 0) return {0, 0};
    return {of_tensor / of_block, of_block * (1 / of_tensor)};
  }
  const float before = scale_to(kLargest, block);
  return {before, 1 / before};
}

// decoded(encoded(value)), without branches, so that loops of it are vectorised. NaN becomes any number.
template <SmallFloat kFormat>
constexpr float nearest(float value) {
  using Traits = SmallFloatTraits<kFormat>;
  constexpr int kDropped = 23 - Traits::kFraction;
  constexpr float kLeastNormal = std::bit_cast<float>(static_cast<std::uint32_t>(128 - Traits::kBias) << 23);
  constexpr float kWholes = kLeastNormal * static_cast<float>(1U << kDropped);  // neighbours differ by the least number
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = bits & 0x80000000U;
  const std::uint32_t whole = bits & 0x7fffffffU;
  const float magnitude = std::bit_cast<float>(whole);
  const std::uint32_t rounded = (whole + (1U << (kDropped - 1)) - 1 + (whole >> kDropped & 1U)) >> kDropped << kDropped;
  const float normal = std::bit_cast<float>(rounded), subnormal = (magnitude + kWholes) - kWholes;
  const float either = magnitude < kLeastNormal ? subnormal : normal;
  const float saturated = either < Traits::kLargest ? either : Traits::kLargest;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(saturated));
}

// Returns the value as the format has it with this scale. NaN stays NaN.
template <SmallFloat kFormat>
constexpr float rounded_to(float value, SmallFloatScale scale) {
  const float rounded = nearest<kFormat>(value * scale.before) * scale.after;
  return value != value ? value : rounded;
}

}  // namespace tandem
