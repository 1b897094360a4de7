// Operators on values. A distributed value contributes its current part: that of the current replica or update or, in a
// cross-replica context, part 0 of a mirrored value. A variable contributes its value() in that context.
//
// Two numbers give a number; comparisons give 1 or 0. A tensor with a number, or with a tensor of equal shape, gives a
// new tensor: inside run() on the replica's device, to which operands from elsewhere are copied, otherwise on the first
// tensor's device, and always in the order of that device's compute stream. Tensors have only the four operations of
// arithmetic (NotImplementedError); integers divide to f64. TypeError for other kinds and for tensors of different
// element types.
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
  modulo,  // has the divisor's sign
  power,
  bitwise_and,  // takes whole numbers, as do the next two
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
Value operator~(const Value& value);  // of a whole number
Value absolute(const Value& value);   // of a number

// Python's pow(): base to the power of exponent, modulo `modulus` where one is given. With a modulus all three are
// whole numbers, and the exponent is not negative (ValueError). The result has the sign of the modulus, which must not
// be 0.
Value power(const Value& base, const Value& exponent);
Value power(const Value& base, const Value& exponent, const Value& modulus);

// Returns the part of the value that belongs to the current context. ValueError for a per-replica value outside a
// replica or update context.
Value current_part(const Value& value);

// Element `index` of the current part, which is a list or a tuple, or row `index` of it, if it is a tensor. TypeError
// for other kinds, ValueError past the end.
Value element(const Value& value, std::int64_t index);
// Field `name` of the current part, which is a map. AttributeError when there is no such field.
Value field(const Value& value, const std::string& name);

}  // namespace tandem
