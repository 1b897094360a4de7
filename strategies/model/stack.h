// How a framework executes the operations of a model: the layout of its images and which operations share a kernel. The
// choice changes predictions of convolutional networks by a factor of up to 1.8, more than any figure of a device does.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// nchw: kernels for tensor cores transpose their inputs first. nhwc: channels last, as these cores read them.
enum class Layout : std::uint8_t { nchw, nhwc };
// none: every operation is a kernel of its own. hand: fused kernels that somebody wrote (batch norm with ReLU, softmax,
// bias with dropout). compiled: a compiler (XLA, TorchInductor) fuses chains of element-wise operations. persistent: as
// hand, with batch norms that keep on the chip what they read (cuDNN's CUDNN_BATCHNORM_SPATIAL_PERSISTENT).
// in_convolutions: batch norms are parts of the convolutions around them (cuDNN's graphs ConvBNfprop and DgradDreluBN).
enum class Fusion : std::uint8_t { none, hand, compiled, persistent, in_convolutions };
// The words for them in scenarios.
const std::vector<std::pair<std::string, Fusion>>& fusions();
const std::string& name_of(Fusion fusion);
// The operations between the two products of attention. separate: kernels as `fusion` says. fused_softmax: all in one
// kernel. flash: inside the products, whose scores stay on the chip; the backward pass computes them again. flash_1:
// the same by the slower kernels of 2022 and 2023.
enum class AttentionKernels : std::uint8_t { separate, fused_softmax, flash, flash_1 };

// How gradients of later passes are added to those of earlier ones. separate: by a kernel of their own. in_products: by
// the product that computes them, as Megatron-LM does.
enum class Accumulation : std::uint8_t { separate, in_products };

// The loss over a vocabulary. separate: kernels that keep the softmax in f32. fused: one kernel for each pass, the
// second of which writes the gradients over the outputs.
enum class Loss : std::uint8_t { separate, fused };

// The kernels of experts that are on one device. separate: those of one expert follow those of the other, and biases
// are added in f32, as Megatron-LM does with Transformer Engine. grouped: a kernel for all of them. fused: that does
// what follows, too.
enum class ExpertKernels : std::uint8_t { separate, grouped, fused };

struct Stack {
  Layout layout = Layout::nhwc;
  Fusion fusion = Fusion::hand;
  AttentionKernels attention = AttentionKernels::separate;
  Accumulation accumulation = Accumulation::separate;
  Loss loss = Loss::separate;
  ExpertKernels experts = ExpertKernels::grouped;
  double block_host_s = 0;  // in which the framework issues the passes of a block, half of it for each; 0: not a limit
  bool keeps_scores() const { return attention != AttentionKernels::flash && attention != AttentionKernels::flash_1; }
  bool is_stated = false;  // in the model file or in the scenario; false: assumed

  std::string text() const;  // "nhwc, fusion hand"
};

// An operation on the output of a layer, element by element or row by row.
enum class Pointwise : std::uint8_t {
  bias,
  batch_norm,
  relu,
  residual,  // the sum with the shortcut, and of the two gradients
  gelu,
  dropout,
  layer_norm,
  scale,
  mask,
  softmax,
  transpose,      // between [tokens, heads] and [heads, tokens]
  cross_entropy,  // softmax and loss over the columns, and the gradient
  rms_norm,
  gate,   // the product with the activation of the layer before it: SwiGLU, GeGLU
  rotary  // positions turned into queries and keys
};

// The memory traffic of one operation on each element, and the number of its kernels; 0 if it is part of another
// kernel.
struct Traffic {
  double passes = 0;  // reads and writes of an element in the type of the activations
  double bytes = 0;   // reads and writes in types of their own: random numbers, sums in f32, masks
  int kernels = 0;
};
struct PointwiseTraffic {
  Traffic forward, backward;
};
// `in_attention`: whether the operation is between the two products of attention.
PointwiseTraffic traffic_of(Pointwise operation, const Stack& stack, bool in_attention);
// Does the same for a batch norm of constants, which needs no sums.
PointwiseTraffic traffic_of_frozen_norm(const Stack& stack);
// Does the same for an operation on what `experts` on one device have made.
PointwiseTraffic traffic_of_experts(Pointwise operation, const Stack& stack, std::int64_t experts);

}  // namespace tandem
