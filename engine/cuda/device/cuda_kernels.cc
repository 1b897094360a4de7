#include "engine/cuda/device/cuda_kernels.h"

#include <fmt/format.h>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/layer_launch.h"
#include "engine/kernel_operands.h"

namespace tandem::cuda {
namespace {

std::string place_text(int place) {
  return place == kHostPlace ? "the host" : fmt::format("GPU {}", place);
}

struct Launch : LayerLaunch {
  using LayerLaunch::operator();
  void operator()(const kernel::Gemm& op) const { launch_gemm(at, op, rate); }
  void operator()(const kernel::Fill& op) const {
    launch_fill(at.stream, op.to.dtype(), op.to.data(), op.value, op.to.element_count());
  }
  void operator()(const kernel::Elementwise& op) const {
    launch_arithmetic(at.stream, op.to.dtype(), static_cast<Arithmetic>(op.operation), op.to.data(), op.a.data(),
                      op.b.data(), op.to.element_count(), at.fault);
  }
  void operator()(const kernel::ScaleAdd& op) const {
    launch_scale_add(at.stream, op.to.dtype(), op.to.data(), op.a.data(), op.alpha, op.beta, op.to.element_count());
  }
  void operator()(const kernel::SquareRoot& op) const {
    launch_square_root(at.stream, op.to.dtype(), op.to.data(), op.a.data(), op.inside, op.outside,
                       op.to.element_count());
  }
  void operator()(const kernel::Relu& op) const {
    launch_relu(at.stream, op.to.dtype(), op.to.data(), op.a.data(), op.to.element_count());
  }
  void operator()(const kernel::ReluGradient& op) const {
    launch_relu_gradient(at.stream, op.to.dtype(), op.to.data(), op.gradient.data(), op.output.data(),
                         op.to.element_count());
  }
  void operator()(const kernel::AddBias& op) const {
    const std::int64_t columns = op.bias.element_count();
    const std::int64_t rows = columns == 0 ? 0 : op.to.element_count() / columns;
    launch_add_bias(at.stream, op.to.dtype(), op.to.data(), op.bias.data(), rows, columns);
  }
  void operator()(const kernel::SumAxis& op) const {
    const Shape& shape = op.a.shape();
    std::int64_t outer = 1, inner = 1;
    for (int axis = 0; axis < op.axis; ++axis) outer *= shape[axis];
    for (int axis = op.axis + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
    launch_sum(at.stream, at.scratch, op.to.dtype(), op.to.data(), op.a.data(), outer, shape[op.axis], inner);
  }
  void operator()(const kernel::SoftmaxCrossEntropy& op) const {
    launch_loss(at.stream, at.scratch,
                {.dtype = op.logits.dtype(),
                 .correct_dtype = op.correct ? op.correct.dtype() : DType::i32,
                 .loss = op.loss.data(),
                 .gradient = op.gradient ? op.gradient.data() : nullptr,
                 .correct = op.correct ? op.correct.data() : nullptr,
                 .logits = op.logits.data(),
                 .labels = static_cast<const std::int32_t*>(op.labels.data()),
                 .rows = op.logits.shape()[0],
                 .classes = op.logits.shape()[1],
                 .loss_scale = op.loss_scale,
                 .gradient_scale = op.gradient_scale},
                at.fault);
  }
  void operator()(const kernel::Cast& op) const {
    launch_cast(at.stream, op.to.dtype(), op.to.data(), op.a.dtype(), op.a.data(), op.to.element_count());
  }
  // The two enumerations have the same order after `replace`.
  void operator()(const kernel::ScatterRows& op) const {
    const bool replaces = op.operation == kernel::Scatter::replace;
    const auto operation = replaces ? Arithmetic::add : static_cast<Arithmetic>(static_cast<int>(op.operation) - 1);
    const std::int64_t count = op.indices.element_count();
    launch_scatter(at.stream, at.scratch,
                   {.dtype = op.to.dtype(),
                    .replaces = replaces,
                    .operation = operation,
                    .to = op.to.data(),
                    .rows = op.rows.data(),
                    .indices = static_cast<const std::int64_t*>(op.indices.data()),
                    .to_rows = op.to.shape()[0],
                    .count = count,
                    .width = count == 0 ? 0 : op.rows.element_count() / count},
                   at.fault);
  }
  void operator()(const kernel::CopyBlocks& op) const {
    const auto size = static_cast<std::int64_t>(size_of(op.to.dtype()));
    launch_copy_blocks(at.stream, static_cast<std::byte*>(op.to.data()) + op.to_first * size,
                       static_cast<const std::byte*>(op.from.data()) + op.from_first * size, op.count,
                       op.elements * size, op.to_stride * size, op.from_stride * size);
  }
  void operator()(const kernel::CopyMany& op) const {
    for (std::size_t next = 0; next < op.to.size();) {
      CopyArguments arguments;
      for (; next < op.to.size() && arguments.count < kMaxCopies; ++next, ++arguments.count) {
        arguments.to[arguments.count] = op.to[next].data();
        arguments.from[arguments.count] = op.from[next].data();
        arguments.bytes[arguments.count] = static_cast<std::int64_t>(op.to[next].size_bytes());
      }
      launch_copies(at.stream, arguments);
    }
  }
  void operator()(const kernel::Largest&) const { refuse("largest"); }
  void operator()(const kernel::TopK&) const { refuse("top_k"); }
  void operator()(const kernel::Custom& op) const {
    if (op.functions->cuda == nullptr) {
      throw RunError("the op has no function for GPUs: give op::custom() one in CustomFunctions::cuda");
    }
    op.functions->cuda(op.operands, at.stream);
  }
  void operator()(const kernel::HostFunction&) const { TANDEM_UNREACHABLE("a host function is no kernel of a GPU"); }

 private:
  [[noreturn]] static void refuse(const char* name) {
    throw RunError(
        fmt::format("{} has no kernel for GPUs (Capabilities::selection_kernels): copy the operand to the "
                    "worker's cpu() and launch it there",
                    name));
  }
};

}  // namespace

static_assert(static_cast<int>(Arithmetic::divide) == static_cast<int>(kernel::Binary::divide) &&
              static_cast<int>(Arithmetic::minimum) == static_cast<int>(kernel::Binary::minimum));

int place_of(const Tensor& tensor) {
  return static_cast<const CudaDevice&>(tensor.device()).place();
}

void check_operands(const Kernel& kernel, int place, int (*place_of)(const Tensor&)) {
  for_each_operand(kernel, [place, place_of](const Tensor& tensor) {
    if (!tensor) return;
    if (tensor.dtype() == DType::tf32) throw RunError("an operand of tf32, which is a rate and no element type");
    const int at = place_of(tensor);
    if (at != kHostPlace && at != place) {
      throw RunError(fmt::format("an operand {} is on {}, out of reach of {}", tensor.shape().text(), place_text(at),
                                 place_text(place)));
    }
  });
}

void launch(const Launcher& launcher, const Op& op) {
  std::visit(Launch{{launcher, op.cost.dtype}}, op.kernel);
  check(cudaGetLastError(), "a kernel's launch");
}

std::string fault_text(const Fault& fault) {
  switch (fault.kind) {
    case Fault::division_by_zero:
      return "an integer is divided by zero";
    case Fault::label:
      return fmt::format("row {} has label {}, must be from 0 to {}", fault.index, fault.value, fault.bound - 1);
    case Fault::row:
      return fmt::format("scatter_rows to row {} of {}", fault.value, fault.bound);
    default:
      return "a kernel has found something wrong";
  }
}

}  // namespace tandem::cuda
