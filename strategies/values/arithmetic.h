// Operators on values. A distributed value stands for its current part: that of the current replica or update, and in a
// cross-replica context part 0 of a mirrored value; a variable stands for what it reads there.
//
// Two numbers give a number (comparisons 1 or 0), a tensor with a number or a tensor of equal shape a new tensor on the
// first tensor's device, in the order of its compute stream. Tensors know the four operations of arithmetic only
// (NotImplementedError); integers divide to f64. TypeError for other kinds and for tensors of different element types.
#pragma once

#include <string>

#include "strategies/values/value.h"

namespace tandem {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,  // of the divisor's sign
  power,
  bitwise_and,  // of whole numbers, as the two below
  bitwise_or,
  bitwise_xor,
  less,
  less_equal,
  greater,
  greater_equal,
};
std::string_view name_of(Operator operation);  // "+"

Value apply(Operator operation, const Value& a, const Value& b);

inline Value operator+(const Value& a, const Value& b) {
  return apply(Operator::add, a, b);
}
inline Value operator-(const Value& a, const Value& b) {
  return apply(Operator::subtract, a, b);
}
inline Value operator*(const Value& a, const Value& b) {
  return apply(Operator::multiply, a, b);
}
inline Value operator/(const Value& a, const Value& b) {
  return apply(Operator::divide, a, b);
}
inline Value operator-(const Value& a) {
  return apply(Operator::subtract, 0.0, a);
}
Value absolute(const Value& value);  // of a number

// What the value stands for here. ValueError for a per-replica value outside a replica or update context.
Value current_part(const Value& value);

// Element `index` of the current part: of a list or a tuple, or row `index` of a tensor. TypeError for other kinds,
// ValueError past the end.
Value element(const Value& value, std::int64_t index);
// Field `name` of the current part, which is a map. AttributeError when it has none.
Value field(const Value& value, const std::string& name);

}  // namespace tandem
