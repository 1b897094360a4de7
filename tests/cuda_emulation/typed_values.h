// Random elements of every type, halves included, and how close two tensors are.
#pragma once

#include <cstdint>
#include <random>

#include "engine/tensor.h"

namespace tandem {

// Small floating values, integers of the whole range; the same for equal seeds.
void fill_random(const Tensor& tensor, std::mt19937_64& random);
// Without zeros, and at least 0.5 in size.
void fill_divisors(const Tensor& tensor, std::mt19937_64& random);
// Whole numbers from 0 to `bound` - 1.
void fill_below(const Tensor& tensor, std::int64_t bound, std::mt19937_64& random);
// What casts treat by rules of their own: NaN, infinities, and values at and beyond the ends of the integer types.
void fill_special(const Tensor& tensor);

bool is_half_type(DType dtype);
// Element by element, between halves and f32 or of one type.
void convert(const Tensor& to, const Tensor& from);
// Empty where all elements of `actual` agree with `expected`: exactly for integers, else within `tolerance`, relative
// to the larger of 1 and the value. Both of one type.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace tandem
