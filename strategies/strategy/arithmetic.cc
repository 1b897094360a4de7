#include "strategies/strategy/arithmetic.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "engine/op.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/values/means.h"
#include "strategies/variables/variable.h"

namespace tandem {
namespace {

std::int64_t whole_operand(std::string_view operation, double number) {
  if (number == std::trunc(number)) return static_cast<std::int64_t>(number);
  throw TypeError(fmt::format("operator {} takes whole numbers, not {}", operation, number));
}

std::int64_t whole(double number, Operator operation) {
  return whole_operand(name_of(operation), number);
}

double on_numbers(Operator operation, double a, double b) {
  switch (operation) {
    case Operator::add:
      return a + b;
    case Operator::subtract:
      return a - b;
    case Operator::multiply:
      return a * b;
    case Operator::divide:
      return a / b;
    case Operator::floor_divide:
      return std::floor(a / b);
    case Operator::modulo:
      return a - (b * std::floor(a / b));
    case Operator::power:
      return std::pow(a, b);
    case Operator::bitwise_and:
      return static_cast<double>(whole(a, operation) & whole(b, operation));
    case Operator::bitwise_or:
      return static_cast<double>(whole(a, operation) | whole(b, operation));
    case Operator::bitwise_xor:
      return static_cast<double>(whole(a, operation) ^ whole(b, operation));
    case Operator::less:
      return a < b ? 1 : 0;
    case Operator::less_equal:
      return a <= b ? 1 : 0;
    case Operator::greater:
      return a > b ? 1 : 0;
    case Operator::greater_equal:
      return a >= b ? 1 : 0;
  }
  TANDEM_UNREACHABLE("a Operator outside its enumerators");
}

kernel::Binary kernel_of(Operator operation) {
  switch (operation) {
    case Operator::add:
      return kernel::Binary::add;
    case Operator::subtract:
      return kernel::Binary::subtract;
    case Operator::multiply:
      return kernel::Binary::multiply;
    case Operator::divide:
      return kernel::Binary::divide;
    default:
      throw NotImplementedError(fmt::format("operator {} on tensors", name_of(operation)));
  }
}

// Returns a number as a tensor of the other operand's type and shape, on its device.
Tensor filled_like(const Tensor& like, double number) {
  if (is_whole(like.dtype()) && number != std::trunc(number)) {
    throw TypeError(fmt::format("{} beside a tensor of type {}", number, name_of(like.dtype())));
  }
  Tensor tensor = like.device().allocate(like.dtype(), like.shape());
  like.device().compute_stream().launch(op::fill(tensor, number));
  return tensor;
}

Tensor on_tensors(Operator operation, Tensor a, Tensor b) {
  const kernel::Binary binary = kernel_of(operation);
  if (a.dtype() != b.dtype()) {
    throw TypeError(fmt::format("operator {} on tensors of types {} and {}", name_of(operation), name_of(a.dtype()),
                                name_of(b.dtype())));
  }
  if (a.shape() != b.shape()) {
    throw ValueError(fmt::format("operator {} on tensors of shapes {} and {}", name_of(operation), a.shape().text(),
                                 b.shape().text()));
  }
  b = copy_on(a.device(), b);
  if (operation == Operator::divide && is_whole(a.dtype())) {
    a = as_f64(a);
    b = as_f64(b);
  }
  Tensor result = a.device().allocate(a.dtype(), a.shape());
  a.device().compute_stream().launch(op::elementwise(binary, result, a, b));
  return result;
}

// Returns the replica's device inside run(); null elsewhere, and in the default strategy, which has no devices.
Device* device_of_replica() {
  const Mode* mode = current_mode();
  return mode && mode->replica && has_strategy() ? &mode->replica->device() : nullptr;
}

// Returns an operand as the operator sees it, on the device where the operator computes.
Value operand(const Value& value) {
  Value part = current_part(value);
  Device* const device = device_of_replica();
  return part.is(ValueKind::tensor) && device ? Value(copy_on(*device, part.tensor())) : part;
}

__extension__ using Wide = __int128;

// Powers of whole numbers without overflow: each product is taken modulo the modulus.
std::int64_t power_modulo(std::int64_t base, std::int64_t exponent, std::int64_t modulus) {
  const auto modulo = [modulus](Wide number) {
    const Wide rest = number % modulus;
    return rest != 0 && (rest < 0) != (modulus < 0) ? rest + modulus : rest;
  };
  Wide result = modulo(1), square = modulo(base);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = modulo(result * square);
    square = modulo(square * square);
  }
  return static_cast<std::int64_t>(result);
}

std::optional<int> current_index() {
  const Mode* mode = current_mode();
  if (!mode) return std::nullopt;
  if (mode->update_replica) return *mode->update_replica;
  if (mode->replica) return mode->replica->local_replica_id();
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Operator operation) {
  static constexpr std::array<std::string_view, 14> kNames = {"+", "-", "*", "/", "//", "%", "**",
                                                              "&", "|", "^", "<", "<=", ">", ">="};
  return kNames.at(static_cast<std::size_t>(operation));
}

Value current_part(const Value& value) {
  if (value.is(ValueKind::variable)) return value.variable()->value();
  if (!value.is_distributed()) return value;
  const std::optional<int> index = current_index();
  if (!index && value.is(ValueKind::per_replica)) {
    throw ValueError("a per-replica value is used as one value while not inside a replica context");
  }
  return value.parts().at(static_cast<std::size_t>(index.value_or(0)));
}

Value apply(Operator operation, const Value& a, const Value& b) {
  const Value left = operand(a), right = operand(b);
  const auto is_operand = [](const Value& v) { return v.is(ValueKind::number) || v.is(ValueKind::tensor); };
  if (!is_operand(left) || !is_operand(right)) {
    throw TypeError(fmt::format("operator {} on {} and {}: it takes numbers and tensors", name_of(operation),
                                with_article(left.kind()), with_article(right.kind())));
  }
  if (left.is(ValueKind::tensor) && right.is(ValueKind::tensor)) {
    return on_tensors(operation, left.tensor(), right.tensor());
  }
  if (left.is(ValueKind::tensor)) {
    return on_tensors(operation, left.tensor(), filled_like(left.tensor(), right.number()));
  }
  if (right.is(ValueKind::tensor)) {
    return on_tensors(operation, filled_like(right.tensor(), left.number()), right.tensor());
  }
  return on_numbers(operation, left.number(), right.number());
}

Value operator~(const Value& value) {
  return static_cast<double>(~whole_operand("~", current_part(value).number()));
}

Value absolute(const Value& value) {
  return std::abs(current_part(value).number());
}

Value power(const Value& base, const Value& exponent) {
  return apply(Operator::power, base, exponent);
}

Value power(const Value& base, const Value& exponent, const Value& modulus) {
  const std::int64_t b = whole_operand("pow", current_part(base).number());
  const std::int64_t e = whole_operand("pow", current_part(exponent).number());
  const std::int64_t m = whole_operand("pow", current_part(modulus).number());
  if (e < 0 || m == 0)
    throw ValueError(fmt::format("pow({}, {}, {}): the exponent is negative or the modulus 0", b, e, m));
  return static_cast<double>(power_modulo(b, e, m));
}

Value element(const Value& value, std::int64_t index) {
  const Value part = current_part(value);
  const bool is_rows = part.is(ValueKind::tensor) && part.tensor().shape().rank() > 0;
  if (!is_rows && !part.is(ValueKind::list) && !part.is(ValueKind::tuple)) {
    throw TypeError(fmt::format("{} has no elements", with_article(part.kind())));
  }
  const std::int64_t count = is_rows ? part.tensor().shape()[0] : static_cast<std::int64_t>(part.parts().size());
  if (index < 0 || index >= count) throw ValueError(fmt::format("element {} of {}", index, count));
  if (!is_rows) return part.parts()[static_cast<std::size_t>(index)];
  const Tensor& rows = part.tensor();
  return rows.slice(index, 1).reshape(Shape(rows.shape().dimensions().subspan(1)));
}

Value field(const Value& value, const std::string& name) {
  const Value part = current_part(value);
  const bool has_it = part.is(ValueKind::map) && part.fields().contains(name);
  if (!has_it) throw AttributeError(fmt::format("{} has no field '{}'", with_article(part.kind()), name));
  return part.fields().at(name);
}

}  // namespace tandem
