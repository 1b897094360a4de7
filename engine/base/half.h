// Floating-point numbers of 16 bits, for element types f16 and bf16: they are stored, and computed with as float.
//
// A float becomes a half by rounding to nearest, ties to even; other types become a float first, so that f64 and i64
// are rounded twice and may differ in the last bit. What is too large becomes an infinity, what is too small a
// subnormal number or zero, and NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tandem {

// IEEE 754's binary16: 5 bits of exponent, 10 of fraction.
struct Float16Format {
  static constexpr std::uint16_t bits_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) {
      half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    } else if (magnitude >= 0x477ff000U) {  // 65520, half-way from the largest to what would come next
      half = 0x7c00U;
    } else if (magnitude < 0x38800000U) {  // 2^-14. The sum's last bit is worth 2^-24, and is rounded to even
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    } else {
      half = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
  }
  static constexpr float value_of(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16, magnitude = (bits & 0x7fffU) << 13;
    std::uint32_t whole = magnitude + (112U << 23);
    if (magnitude >= 0x0f800000U) {
      whole += 112U << 23;
    } else if (magnitude < 0x00800000U) {
      whole = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113U << 23)) - 0x1p-14F);
    }
    return std::bit_cast<float>(sign | whole);
  }
};

// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct BFloat16Format {
  static constexpr std::uint16_t bits_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }
  static constexpr float value_of(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

template <typename Format>
struct Half {
  constexpr Half() = default;
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  constexpr Half(Number number) : bits(Format::bits_of(static_cast<float>(number))) {}  // NOLINT(*-explicit-*)
  constexpr operator float() const { return Format::value_of(bits); }                   // NOLINT(*-explicit-*)

  std::uint16_t bits = 0;
};

using Float16 = Half<Float16Format>;
using BFloat16 = Half<BFloat16Format>;

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type that elements are computed with.
template <typename T>
using Wide = std::conditional_t<is_half<T>, float, T>;

}  // namespace tandem
