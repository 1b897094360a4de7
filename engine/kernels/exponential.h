// exp() of f32 and f64 without calls or branches, so that loops over it are vectorised, and from operations that IEEE
// 754 fixes to the bit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tandem {

// kRounding + n has n in its lowest bits; the difference from it is x rounded to a whole number. ln 2 is in two parts,
// the first so short that its product with an exponent is exact. Beyond the bounds the result is 0 or infinite.
template <typename T>
struct ExponentialFormat;
template <>
struct ExponentialFormat<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23, kBias = 127;
  static constexpr float kRounding = 0x1.8p23F, kLn2High = 0x1.62e4p-1F, kLn2Low = 0x1.7f7d1cp-20F;
  static constexpr float kLeast = -105, kMost = 89;
};
template <>
struct ExponentialFormat<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52, kBias = 1023;
  static constexpr double kRounding = 0x1.8p52, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kLeast = -746, kMost = 710;
};

// 1 / n! for as many n as change the last place.
template <typename T>
inline constexpr auto kInverseFactorials = [] {
  std::array<T, std::is_same_v<T, float> ? 8 : 14> values{};
  double factorial = 1;
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    values[n] = static_cast<T>(1 / factorial);
  }
  return values;
}();

// The error is below 2 units in the last place. NaN stays NaN.
template <typename T>
inline T exponential(T x) {
  using Format = ExponentialFormat<T>;
  using Bits = typename Format::Bits;
  x = x < Format::kLeast ? Format::kLeast : x;
  x = x > Format::kMost ? Format::kMost : x;
  const T power = (x * T{0x1.71547652b82fep+0} + Format::kRounding) - Format::kRounding;
  const T rest = (x - power * Format::kLn2High) - power * Format::kLn2Low;
  T sum = 0;
  for (std::size_t n = kInverseFactorials<T>.size(); n-- > 0;) sum = sum * rest + kInverseFactorials<T>[n];
  // 2^power as two factors, because the result may be too small for one.
  const T half = power * T{0.5} + Format::kRounding, other = (power - (half - Format::kRounding)) + Format::kRounding;
  const auto factor = [](T exponent) {
    return std::bit_cast<T>((std::bit_cast<Bits>(exponent) << Format::kFraction) +
                            (Bits{Format::kBias} << Format::kFraction));
  };
  return sum * factor(half) * factor(other);
}

}  // namespace tandem
