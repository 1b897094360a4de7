// One piece of device work: its name, its cost and its effect.
//
// Cost and effect travel together but apart: a simulated device charges the cost, a real one executes the
// kernel. Kernels are plain data, so that each kind of device can bring its own implementation; the CPU's
// is engine/kernels. Build ops with the functions below and those of engine/layer_ops.h, which fill in the cost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/kernel_shape.h"
#include "engine/base/name.h"
#include "engine/layer_kernels.h"
#include "engine/tensor.h"
#include "engine/timeline.h"

namespace tandem {

// What a piece of work takes, for models of devices; real engines ignore it. flops: floating-point operations. bytes:
// read plus written.
struct OpCost {
  double flops = 0;
  double bytes = 0;
  DType dtype = DType::f32;            // the type whose rate the flops run at
  KernelShape shape{};                 // of one launch; empty: that of the kernel
  int kernels = 1;                     // launches that the op represents, each of which has its part of the work
  bool has_wide_loads = false;         // a thread of a GPU loads several elements at a time
  double issue_s = 0;                  // host time that the program's framework takes to issue it, beside the launches
  std::optional<double> recorded_s{};  // the time that it took when it was recorded, in place of all of the above
};

namespace kernel {

// c[m,n] = alpha * op(a) * op(b) + beta * c. Operands of f32 or f64. a is [m,k], or [k,m] when transposed.
struct Gemm {
  Tensor c, a, b;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  std::int64_t repeats = 1;  // computed so often, on the same operands: work without meaning needs no more memory
};
struct Fill {
  Tensor to;
  double value = 0;
};
// to[i] = a[i] op b[i]. All have one element count; `to` may be `a` or `b`.
enum class Binary : std::uint8_t { add, subtract, multiply, divide, maximum, minimum };
struct Elementwise {
  Binary operation = Binary::add;
  Tensor to, a, b;
};
// to = alpha * a + beta * to: scaling (beta 0), accumulation (alpha = beta = 1), SGD (alpha = -rate, beta 1).
struct ScaleAdd {
  Tensor to, a;
  double alpha = 1, beta = 0;
};
// to[i] = sqrt(a[i] + inside) + outside, of floating-point types, rounded as IEEE 754 says.
struct SquareRoot {
  Tensor to, a;
  double inside = 0, outside = 0;
};
struct Relu {
  Tensor to, a;
};
// to = gradient where output > 0, else 0.
struct ReluGradient {
  Tensor to, gradient, output;
};
// to[row, :] += bias for every row.
struct AddBias {
  Tensor to, bias;
};
// to = sum of a over `axis`; `to` has the other dimensions of `a`.
struct SumAxis {
  Tensor to, a;
  int axis = 0;
};
// For each row of logits [rows, classes] and labels [rows] (i32): loss[0] = loss_scale * sum of cross entropies;
// gradient = gradient_scale * (softmax - one hot); correct[0] = number of rows whose largest logit is the label.
// `gradient` and `correct` may be empty.
struct SoftmaxCrossEntropy {
  Tensor loss, gradient, correct, logits, labels;
  double loss_scale = 1, gradient_scale = 1;
};
// to = a converted to the element type of `to`; floating to integer truncates.
struct Cast {
  Tensor to, a;
};
// to[indices[i]] op= rows[i] for every i in order, where `to` and `rows` are matrices and indices are i64. `replace`
// stores the row. An index outside `to` is an error of the op.
enum class Scatter : std::uint8_t { replace, add, subtract, multiply, divide, maximum, minimum };
struct ScatterRows {
  Scatter operation = Scatter::replace;
  Tensor to, rows, indices;
};
// Copies `count` blocks of `elements` elements, at distances of to_stride and from_stride elements: a strided copy on
// one device, like cudaMemcpy2D.
struct CopyBlocks {
  Tensor to, from;
  std::int64_t count = 0, elements = 0;
  std::int64_t to_first = 0, to_stride = 0, from_first = 0, from_stride = 0;
};
// Copies many tensors of one device in one launch, each to one of as many elements: concatenation into a pack and back.
struct CopyMany {
  std::vector<Tensor> to, from;
};
// to[0] = the largest element of a, or the largest magnitude of one; NaN where an element is NaN.
struct Largest {
  Tensor to, a;
  bool is_of_magnitudes = false;
};
// values = the elements of a, seen as one row, that have the largest magnitudes, as many as `values` holds, and indices
// (i64) = their places: the largest first, and of equal ones the first. NaN is larger than any number.
struct TopK {
  Tensor values, indices, a;
};
// A kernel of one's own. Both functions get the op's operands.
struct CustomFunctions {
  // Computes in host memory, on one of the engine's threads; must not call the engine.
  std::function<void(std::span<const Tensor>)> cpu;
  // Launches kernels on this cudaStream_t, without waiting for them. Empty: the op is refused on GPUs of this machine.
  std::function<void(std::span<const Tensor>, void* stream)> cuda{};
};
struct Custom {
  std::vector<Tensor> operands;
  std::shared_ptr<const CustomFunctions> functions;
};
// Calls a function on a host thread, in stream order. The function may touch the memory of devices only where
// Capabilities::host_functions_reach_devices, and must not call the engine. Engines that carry no values skip it.
// Streams of other workers accept it only where Capabilities::remote_functions.
struct HostFunction {
  std::function<void()> call;
};

}  // namespace kernel

using Kernel =
    std::variant<kernel::Gemm, kernel::Fill, kernel::Elementwise, kernel::ScaleAdd, kernel::SquareRoot, kernel::Relu,
                 kernel::ReluGradient, kernel::AddBias, kernel::SumAxis, kernel::SoftmaxCrossEntropy, kernel::Cast,
                 kernel::ScatterRows, kernel::CopyBlocks, kernel::CopyMany, kernel::Largest, kernel::TopK,
                 kernel::BatchedGemm, kernel::Softmax, kernel::SoftmaxGradient, kernel::Normalize,
                 kernel::NormalizeGradient, kernel::NormalizeParameterGradients, kernel::Activate,
                 kernel::ActivationGradient, kernel::Dropout, kernel::GatherRows, kernel::AddRows, kernel::CopyStrided,
                 kernel::Rotary, kernel::RowMaxima, kernel::ExponentialSums, kernel::DividedCrossEntropy,
                 kernel::LargestOfRows, kernel::DispatchRows, kernel::CombineRows, kernel::ExpertWeightGradients,
                 kernel::RaiseMaximum, kernel::Quantise, kernel::Custom, kernel::HostFunction>;

struct Op {
  Name name;
  Category category = Category::compute;
  OpCost cost;
  Kernel kernel;
};

// Takes the leases from the operands that are on `device`. Engines call it for what goes to the device's compute
// stream: later writes are issued to that stream, too, and so come after the op anyway.
void drop_leases(Kernel& kernel, const Device& device);

namespace op {
// Each checks shapes and element types (throws UsageError) and computes the cost. The category is compute; change it in
// the returned Op where the work is an update or part of a communication.
Op gemm(Tensor c, Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false, double alpha = 1,
        double beta = 0);
Op fill(Tensor to, double value);
Op elementwise(kernel::Binary operation, Tensor to, Tensor a, Tensor b);
Op scale_add(Tensor to, Tensor a, double alpha, double beta);
Op square_root(Tensor to, Tensor a, double inside = 0, double outside = 0);
Op relu(Tensor to, Tensor a);
Op relu_gradient(Tensor to, Tensor gradient, Tensor output);
Op add_bias(Tensor to, Tensor bias);
Op sum_axis(Tensor to, Tensor a, int axis);
Op softmax_cross_entropy(kernel::SoftmaxCrossEntropy kernel);
Op cast(Tensor to, Tensor a);
Op scatter_rows(kernel::Scatter operation, Tensor to, Tensor rows, Tensor indices);
Op copy_blocks(kernel::CopyBlocks kernel);
Op copy_many(std::vector<Tensor> to, std::vector<Tensor> from);
// Writes `from` into `to`, which is longer along `axis`, from index `first` of that axis.
Op place_along(Tensor to, Tensor from, int axis, std::int64_t first);
// Fills `to` with the part of `from` that begins at index `first` of `axis`.
Op take_along(Tensor to, Tensor from, int axis, std::int64_t first);
Op largest(Tensor to, Tensor a);
Op largest_magnitude(Tensor to, Tensor a);
// Engines on GPUs have no such kernels unless Capabilities::selection_kernels. The inverse, which adds values to the
// elements of a dense tensor that indices name, is scatter_rows() of tensors of rank 1.
Op top_k(Tensor values, Tensor indices, Tensor a);
// An op of one's own, for every engine: simulated devices let the time of `cost` pass, which is the larger of its flops
// at the peak rate of its dtype and its bytes at the bandwidth of the memory, and call functions.cpu where they carry
// values. `operands` are all tensors that the functions touch. Streams of other workers accept it only where
// Capabilities::remote_functions.
Op custom(Name name, OpCost cost, std::vector<Tensor> operands, kernel::CustomFunctions functions);
Op host_function(Name name, OpCost cost, std::function<void()> call);
}  // namespace op

}  // namespace tandem
