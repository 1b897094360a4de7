#include "engine/cuda/device/op_identity.h"

#include <array>
#include <type_traits>

#include "engine/kernel_fields.h"
#include "engine/kernel_operands.h"

namespace tandem::cuda {
namespace {

template <typename Number>
void add_field(IdentityHash& shape, Number number) {
  static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
  shape.add_number(number);
}
template <typename Number, std::size_t N>
void add_field(IdentityHash& shape, const std::array<Number, N>& numbers) {
  for (const Number number : numbers) shape.add_number(number);
}

void add_operand(IdentityHash& shape, IdentityHash& addresses, const Tensor& tensor) {
  shape.add_number(static_cast<bool>(tensor));
  if (!tensor) return;
  addresses.add_number(reinterpret_cast<std::uintptr_t>(tensor.data()));
  shape.add_number(tensor.dtype());
  shape.add_number(tensor.shape().rank());
  for (const std::int64_t size : tensor.shape().dimensions()) shape.add_number(size);
}

}  // namespace

void add_identity(IdentityHash& shape, IdentityHash& addresses, const Op& op) {
  shape.add_number(op.kernel.index());
  shape.add_number(op.cost.dtype);
  for_each_field(op.kernel, [&](const auto& field) { add_field(shape, field); });
  for_each_operand(op.kernel, [&](const Tensor& operand) { add_operand(shape, addresses, operand); });
}

}  // namespace tandem::cuda
