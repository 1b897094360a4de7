#include "engine/mpi/wire_op.h"

#include <cstddef>
#include <utility>

#include "engine/kernel_operands.h"

namespace tandem::mpi {
namespace {

// Calls visit(value) for each field of a kernel that is no tensor.
template <typename Visit>
class FieldVisitor {
 public:
  explicit FieldVisitor(Visit& visit) : visit_(visit) {}

  void operator()(kernel::Gemm& kernel) const {
    all(kernel.m, kernel.n, kernel.k, kernel.transpose_a, kernel.transpose_b, kernel.alpha, kernel.beta);
  }
  void operator()(kernel::Fill& kernel) const { all(kernel.value); }
  void operator()(kernel::Elementwise& kernel) const { all(kernel.operation); }
  void operator()(kernel::ScaleAdd& kernel) const { all(kernel.alpha, kernel.beta); }
  void operator()(kernel::SquareRoot& kernel) const { all(kernel.inside, kernel.outside); }
  void operator()(kernel::Relu& /*kernel*/) const {}
  void operator()(kernel::ReluGradient& /*kernel*/) const {}
  void operator()(kernel::AddBias& /*kernel*/) const {}
  void operator()(kernel::SumAxis& kernel) const { all(kernel.axis); }
  void operator()(kernel::SoftmaxCrossEntropy& kernel) const { all(kernel.loss_scale, kernel.gradient_scale); }
  void operator()(kernel::Cast& /*kernel*/) const {}
  void operator()(kernel::ScatterRows& kernel) const { all(kernel.operation); }
  void operator()(kernel::CopyBlocks& kernel) const {
    all(kernel.count, kernel.elements, kernel.to_first, kernel.to_stride, kernel.from_first, kernel.from_stride);
  }
  void operator()(kernel::CopyMany& kernel) const {
    std::uint64_t count = kernel.to.size();
    visit_(count);
    kernel.to.resize(count);
    kernel.from.resize(count);
  }
  void operator()(kernel::Largest& kernel) const { all(kernel.is_of_magnitudes); }
  void operator()(kernel::TopK& /*kernel*/) const {}
  void operator()(kernel::Custom& /*kernel*/) const { TANDEM_UNREACHABLE("a function as bytes"); }
  void operator()(kernel::HostFunction& /*kernel*/) const { TANDEM_UNREACHABLE("a function as bytes"); }

 private:
  template <typename... Fields>
  void all(Fields&... fields) const {
    (visit_(fields), ...);
  }

  Visit& visit_;
};

template <typename Visit>
void for_each_field(Kernel& kernel, Visit&& visit) {
  std::visit(FieldVisitor<std::remove_reference_t<Visit>>(visit), kernel);
}

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
