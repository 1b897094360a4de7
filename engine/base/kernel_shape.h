// What a library kernel computes, for models of devices: its operands' shapes, not how it is done. Real engines ignore
// it; a simulated GPU derives tiles, algorithms and memory traffic from it (engine/sim/costs/kernel_costs.h).
#pragma once

#include <cstdint>
#include <variant>

namespace tandem {

// `count` independent products c[m,n] = a[m,k] b[k,n], one launch.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t count = 1;
  bool scales_blocks = false;  // whether each partial sum over 128 elements is multiplied by scales in f32

  bool operator==(const ProductShape&) const = default;
};

// One pass of a convolution with padding, so that an output side is the input side / stride, rounded up. The kernel has
// as many equal sides as the input.
struct ConvolutionShape {
  enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient };
  Pass pass = Pass::forward;
  std::int64_t images = 0;
  std::int64_t height = 0, width = 0;  // of the input
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t kernel = 1;  // its side
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool channels_last = true;     // NHWC; false: NCHW
  std::int64_t image_depth = 0;  // of an input with three sides; 0: it has two

  std::int64_t of_window(std::int64_t side) const { return image_depth > 0 ? side * side * side : side * side; }
  std::int64_t in_depth() const { return image_depth > 0 ? image_depth : 1; }
  std::int64_t out_depth() const { return (in_depth() + stride - 1) / stride; }
  std::int64_t in_points() const { return height * width * in_depth(); }
  std::int64_t out_points() const { return out_height() * out_width() * out_depth(); }
  std::int64_t out_height() const { return (height + stride - 1) / stride; }
  std::int64_t out_width() const { return (width + stride - 1) / stride; }
  std::int64_t input_elements() const { return images * in_points() * in_channels; }
  std::int64_t output_elements() const { return images * out_points() * out_channels; }
  std::int64_t weights() const { return in_channels / groups * out_channels * of_window(kernel); }
  double flops() const {  // two for each multiply-accumulate; all passes have equally many
    const std::int64_t per_output = in_channels / groups * of_window(kernel);
    return 2.0 * static_cast<double>(output_elements()) * static_cast<double>(per_output);
  }
  bool operator==(const ConvolutionShape&) const = default;
};

// One of the products of attention inside a kernel that keeps the scores on the chip (Dao, arXiv:2307.08691): the
// forward pass has two, the backward pass five.
struct AttentionShape {
  std::int64_t count = 1;  // heads, of all examples
  std::int64_t queries = 0, keys = 0, head_size = 0;
  double attended = 1;            // of all pairs of a query and a key, the share that is computed
  bool makes_scores = false;      // and takes their exponentials
  bool is_first_version = false;  // of such kernels, which is slower

  double pairs() const { return static_cast<double>(count * queries) * static_cast<double>(keys) * attended; }
  bool operator==(const AttentionShape&) const = default;
};

// monostate: none of them; the kernel's time follows from its bytes, or from its flops as for any product.
using KernelShape = std::variant<std::monostate, ProductShape, ConvolutionShape, AttentionShape>;

}  // namespace tandem
