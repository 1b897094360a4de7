#include "engine/cuda/op_identity.h"

#include <type_traits>

#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

class Identity {
 public:
  Identity(IdentityHash& shape, IdentityHash& addresses) : shape_(shape), addresses_(addresses) {}

  template <typename... Fields>
  void add(const Fields&... fields) {
    (add_one(fields), ...);
  }

  void operator()(const kernel::Gemm& op) {
    add(op.c, op.a, op.b, op.m, op.n, op.k, op.transpose_a, op.transpose_b, op.alpha, op.beta);
  }
  void operator()(const kernel::Fill& op) { add(op.to, op.value); }
  void operator()(const kernel::Elementwise& op) { add(op.operation, op.to, op.a, op.b); }
  void operator()(const kernel::ScaleAdd& op) { add(op.to, op.a, op.alpha, op.beta); }
  void operator()(const kernel::SquareRoot& op) { add(op.to, op.a, op.inside, op.outside); }
  void operator()(const kernel::Relu& op) { add(op.to, op.a); }
  void operator()(const kernel::ReluGradient& op) { add(op.to, op.gradient, op.output); }
  void operator()(const kernel::AddBias& op) { add(op.to, op.bias); }
  void operator()(const kernel::SumAxis& op) { add(op.to, op.a, op.axis); }
  void operator()(const kernel::SoftmaxCrossEntropy& op) {
    add(op.loss, op.gradient, op.correct, op.logits, op.labels, op.loss_scale, op.gradient_scale);
  }
  void operator()(const kernel::Cast& op) { add(op.to, op.a); }
  void operator()(const kernel::ScatterRows& op) { add(op.operation, op.to, op.rows, op.indices); }
  void operator()(const kernel::CopyBlocks& op) {
    add(op.to, op.from, op.count, op.elements, op.to_first, op.to_stride, op.from_first, op.from_stride);
  }
  void operator()(const kernel::CopyMany& op) {
    add(op.to.size());
    for (const Tensor& tensor : op.to) add(tensor);
    for (const Tensor& tensor : op.from) add(tensor);
  }
  void operator()(const kernel::Largest& op) { add(op.to, op.a, op.is_of_magnitudes); }
  void operator()(const kernel::TopK& op) { add(op.values, op.indices, op.a); }
  void operator()(const kernel::Custom&) const { TANDEM_UNREACHABLE("a function of one's own is in no graph"); }
  void operator()(const kernel::HostFunction&) const { TANDEM_UNREACHABLE("a host function is no launch on a GPU"); }

 private:
  template <typename Number>
  void add_one(Number number) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    shape_.add_number(number);
  }
  void add_one(const Tensor& tensor) {
    if (!tensor) return add_one(false);
    addresses_.add_number(reinterpret_cast<std::uintptr_t>(tensor.data()));
    add(true, tensor.dtype(), tensor.shape().rank());
    for (int axis = 0; axis < tensor.shape().rank(); ++axis) add_one(tensor.shape()[axis]);
  }

  IdentityHash &shape_, &addresses_;
};

}  // namespace

void add_identity(IdentityHash& shape, IdentityHash& addresses, const Op& op) {
  Identity identity(shape, addresses);
  identity.add(op.kernel.index(), op.cost.dtype);
  std::visit(identity, op.kernel);
}

}  // namespace tandem::cuda
