#include "scenarios/workloads/layer_kernels.h"

#include <algorithm>

#include "strategies/model/lora.h"

namespace tandem {
namespace {

using Part = LayerKernel::Part;
using ConvolutionPass = ConvolutionShape::Pass;

// Assumed: the host time in which an eager framework issues a kernel. It does not limit steps with large batches.
constexpr double kEagerIssue_s = 6e-6;

const char* words_of(Part part) {
  switch (part) {
    case Part::weight_gradient:
      return " weight gradient";
    case Part::input_gradient:
      return " input gradient";
    case Part::product:
    case Part::table_gradient:
    case Part::memory:
      break;
  }
  return "";
}

}  // namespace

LayerKernels::LayerKernels(const Stack& stack, DType dtype, std::int64_t batch, bool eager)
    : stack_(stack),
      element_bytes_(static_cast<double>(size_of(dtype))),
      batch_(batch),
      issue_s_(eager && stack.fusion != Fusion::compiled ? kEagerIssue_s : 0) {}

LayerKernel LayerKernels::product(const Layer& layer, Part part) const {
  LayerKernel kernel = {.part = part, .name = layer.name + words_of(part), .issue_s = issue_s_};
  if (layer.convolution) {
    kernel.shape = convolution(layer, part);
  } else if (is_in_flash_attention(layer)) {
    kernel.shape = attention(layer, part);
    kernel.computed = layer.gemm->attended;
    kernel.unmoved = unmoved_elements(layer);
  } else {
    kernel.shape = matrix_product(*layer.gemm, part);
  }
  if (is_of_experts(layer) && stack_.experts == ExpertKernels::separate) {
    kernel.kernels = static_cast<int>(layer.gemm->experts);
    kernel.issue_s *= kernel.kernels;
    std::get<ProductShape>(kernel.shape).count = 1;
  }
  return kernel;
}

bool LayerKernels::is_in_flash_attention(const Layer& layer) const {
  return !stack_.keeps_scores() && layer.scores != Layer::Scores::none;
}

// In each kernel, scores are the result of one product of attention, or the left operand of the other one.
double LayerKernels::unmoved_elements(const Layer& layer) const {
  const Layer::Gemm& gemm = *layer.gemm;
  const std::int64_t side = layer.scores == Layer::Scores::made ? gemm.columns : gemm.depth;
  return static_cast<double>(batch_ * gemm.count * gemm.rows) * static_cast<double>(side);
}

// In the backward pass, the product that computes the scores again has their exponentials.
AttentionShape LayerKernels::attention(const Layer& layer, Part part) const {
  const Layer::Gemm& gemm = *layer.gemm;
  const bool makes_scores = layer.scores == Layer::Scores::made;
  return {.count = batch_ * gemm.count,
          .queries = gemm.rows,
          .keys = makes_scores ? gemm.columns : gemm.depth,
          .head_size = makes_scores ? gemm.depth : gemm.columns,
          .attended = gemm.attended,
          .makes_scores = makes_scores && part == Part::product,
          .is_first_version = stack_.attention == AttentionKernels::flash_1};
}

ConvolutionShape LayerKernels::convolution(const Layer& layer, Part part) const {
  const Layer::Convolution& convolution = *layer.convolution;
  return {.pass = part == Part::weight_gradient  ? ConvolutionPass::weight_gradient
                  : part == Part::input_gradient ? ConvolutionPass::input_gradient
                                                 : ConvolutionPass::forward,
          .images = batch_,
          .height = convolution.height,
          .width = convolution.width,
          .in_channels = convolution.in_channels,
          .out_channels = convolution.out_channels,
          .kernel = convolution.kernel,
          .stride = convolution.stride,
          .groups = convolution.groups,
          .channels_last = stack_.layout == Layout::nhwc,
          .image_depth = convolution.image_depth};
}

// The products of all examples are one product, unless both operands belong to the example.
ProductShape LayerKernels::matrix_product(const Layer::Gemm& gemm, Part part) const {
  const std::int64_t rows = gemm.batched ? gemm.rows : std::max<std::int64_t>(1, batch_ * gemm.rows / gemm.experts);
  const std::int64_t count = gemm.batched ? batch_ * gemm.count : gemm.experts;
  if (part == Part::weight_gradient) return {.m = gemm.depth, .n = gemm.columns, .k = rows, .count = count};
  if (part == Part::input_gradient) return {.m = rows, .n = gemm.depth, .k = gemm.columns, .count = count};
  return {.m = rows, .n = gemm.columns, .k = gemm.depth, .count = count};
}

LayerKernel LayerKernels::memory(const std::string& name, double bytes, int kernels) const {
  return {.name = name, .bytes = bytes, .kernels = kernels, .issue_s = issue_s_ * kernels};
}

// A kernel reads once and writes once.
void LayerKernels::add_passes(const Layer& layer, double passes, std::vector<LayerKernel>& kernels) const {
  constexpr double kOfOneKernel = 2;
  const auto elements = static_cast<double>(batch_ * layer.elementwise->elements);
  for (; passes > 0 && elements > 0; passes -= kOfOneKernel) {
    kernels.push_back(memory(layer.name, std::min(passes, kOfOneKernel) * elements * element_bytes_, 1));
  }
}

// Adds the kernels of all operations that follow a layer; the stack says what each operation adds.
void LayerKernels::add_operations(const Layer& layer, bool forward, std::vector<LayerKernel>& kernels) const {
  const auto elements = static_cast<double>(batch_ * layer.output_elements());
  const bool is_attention = std::count(layer.then.begin(), layer.then.end(), Pointwise::softmax) > 0;
  double bytes = 0;
  int launches = 0;
  for (const Pointwise operation : layer.then) {
    if (!forward && layer.is_frozen && operation == Pointwise::bias) continue;
    const PointwiseTraffic both = is_of_experts(layer) ? traffic_of_experts(operation, stack_, layer.gemm->experts)
                                  : layer.has_frozen_norm && operation == Pointwise::batch_norm
                                      ? traffic_of_frozen_norm(stack_)
                                      : traffic_of(operation, stack_, is_attention);
    const Traffic& traffic = forward ? both.forward : both.backward;
    bytes += elements * (traffic.passes * element_bytes_ + traffic.bytes);
    launches += traffic.kernels;
  }
  if (bytes <= 0) return;
  kernels.push_back(memory(layer.name + (forward ? " then" : " then gradient"), bytes, launches));
  kernels.back().has_wide_loads = !layer.convolution;
}

std::vector<LayerKernel> LayerKernels::forward(const Layer& layer) const {
  std::vector<LayerKernel> kernels;
  if (batch_ == 0) return kernels;
  if (layer.gemm) kernels.push_back(product(layer, Part::product));
  if (layer.elementwise) add_passes(layer, layer.elementwise->forward_passes, kernels);
  if (layer.embedding) {
    const auto elements = static_cast<double>(batch_ * layer.output_elements());
    kernels.push_back(memory(layer.name, 2 * elements * element_bytes_, 1));
  }
  add_operations(layer, true, kernels);
  return kernels;
}

std::vector<LayerKernel> LayerKernels::backward(const Layer& layer, bool with_input) const {
  std::vector<LayerKernel> kernels;
  if (batch_ == 0) return kernels;
  add_operations(layer, false, kernels);
  if (layer.elementwise) add_passes(layer, layer.elementwise->backward_passes, kernels);
  // The gradient of the table is set to zero, then rows are added to some of it.
  if (layer.embedding && !layer.is_frozen) {
    const auto elements = static_cast<double>(3 * batch_ * layer.output_elements());
    const auto table = static_cast<double>(layer.embedding->entries * layer.embedding->columns);
    kernels.push_back(memory(layer.name + " gradient", (elements + table) * element_bytes_, 2));
    kernels.back().part = Part::table_gradient;
  }
  if (layer.gemm) {
    // Scores that were not kept are computed again (Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 2).
    if (is_in_flash_attention(layer) && layer.scores == Layer::Scores::made) {
      kernels.push_back(product(layer, Part::product));
    }
    if (!layer.is_frozen || layer.gemm->batched) kernels.push_back(product(layer, Part::weight_gradient));
    if (with_input) kernels.push_back(product(layer, Part::input_gradient));
  }
  return kernels;
}

LayerKernel LayerKernels::down(const Layer& layer, Part part) const {
  LayerKernel kernel = product(down_adapter(layer), part);
  kernel.of = LayerKernel::Of::down_adapter;
  return kernel;
}

LayerKernel LayerKernels::up(const Layer& layer, Part part, int row_parts) const {
  LayerKernel kernel = product(up_adapter(layer, row_parts), part);
  kernel.of = LayerKernel::Of::up_adapter;
  return kernel;
}

// Reads both and writes one.
LayerKernel LayerKernels::sum(const std::string& name, std::int64_t elements) const {
  constexpr double kPasses = 3;
  LayerKernel kernel = memory(name, kPasses * static_cast<double>(batch_ * elements) * element_bytes_, 1);
  kernel.has_wide_loads = true;
  return kernel;
}

std::vector<LayerKernel> LayerKernels::adapter_forward(const Layer& layer, int row_parts) const {
  std::vector<LayerKernel> kernels;
  if (batch_ == 0 || layer.adapter_rank == 0) return kernels;
  if (!layer.shares_adapter) kernels.push_back(down(layer, Part::product));
  kernels.push_back(up(layer, Part::product, row_parts));
  kernels.push_back(sum(layer.name + " adapter sum", layer.output_elements() / row_parts));
  return kernels;
}

// The gradient of what is between both matrices, which the first one's gradients read, goes back where anything does.
std::vector<LayerKernel> LayerKernels::adapter_weights(const Layer& layer, int row_parts, bool goes_back) const {
  std::vector<LayerKernel> kernels;
  if (batch_ == 0 || layer.adapter_rank == 0) return kernels;
  kernels.push_back(up(layer, Part::weight_gradient, row_parts));
  if (!goes_back) kernels.push_back(up(layer, Part::input_gradient, row_parts));
  if (!layer.shares_adapter) kernels.push_back(down(layer, Part::weight_gradient));
  return kernels;
}

std::vector<LayerKernel> LayerKernels::adapter_input(const Layer& layer, int row_parts) const {
  std::vector<LayerKernel> kernels;
  if (batch_ == 0 || layer.adapter_rank == 0) return kernels;
  kernels.push_back(up(layer, Part::input_gradient, row_parts));
  if (layer.shares_adapter) return kernels;
  kernels.push_back(down(layer, Part::input_gradient));
  kernels.push_back(sum(layer.name + " adapter sum gradient", layer.gemm->rows * layer.gemm->depth));
  return kernels;
}

}  // namespace tandem
