#include "engine/mpi/remote/wire_op.h"

#include <cstddef>
#include <utility>

#include "engine/kernel_fields.h"
#include "engine/kernel_operands.h"

namespace tandem::mpi {
namespace {

template <std::size_t I = 0>
Kernel kernel_of(std::size_t index) {
  if constexpr (I < std::variant_size_v<Kernel>) {
    if (index == I) return Kernel(std::in_place_index<I>);
    return kernel_of<I + 1>(index);
  } else {
    TANDEM_UNREACHABLE("a kernel that there is not");
  }
}

}  // namespace

void put_op(ByteWriter& bytes, Op& op, const std::function<void(const Tensor&)>& put_tensor) {
  bytes.put_text(op.name).put(op.category).put(op.cost.flops).put(op.cost.bytes);
  bytes.put(static_cast<std::uint8_t>(op.kernel.index()));
  for_each_field(op.kernel, [&](const auto& field) { bytes.put(field); });
  for_each_operand(op.kernel, [&](const Tensor& operand) {
    bytes.put(static_cast<bool>(operand));
    if (operand) put_tensor(operand);
  });
}

Op get_op(ByteReader& bytes, const std::function<Tensor()>& get_tensor) {
  Op op;
  op.name = bytes.get_text();
  op.category = bytes.get<Category>();
  op.cost.flops = bytes.get<double>();
  op.cost.bytes = bytes.get<double>();
  op.kernel = kernel_of(bytes.get<std::uint8_t>());
  for_each_field(op.kernel, [&](auto& field) { field = bytes.get<std::remove_reference_t<decltype(field)>>(); });
  for_each_operand(op.kernel, [&](Tensor& operand) {
    if (bytes.get<bool>()) operand = get_tensor();
  });
  return op;
}

}  // namespace tandem::mpi
