#include "scenarios/workloads/layer_ops.h"

#include <algorithm>

namespace tandem {

ScratchSizes scratch_sizes(const Model& model, std::int64_t batch) {
  ScratchSizes sizes;
  for (const Layer& layer : model.layers) {
    if (const auto& gemm = layer.gemm) {
      const std::int64_t m = batch * gemm->count * gemm->rows;
      sizes.left = std::max(sizes.left, m * gemm->depth);
      sizes.right = std::max(sizes.right, gemm->depth * gemm->columns);
      sizes.result = std::max(sizes.result, m * gemm->columns);
    }
    if (layer.elementwise) {
      sizes.left = std::max(sizes.left, batch * layer.elementwise->elements);
      sizes.result = std::max(sizes.result, batch * layer.elementwise->elements);
    }
  }
  return sizes;
}

ProductOps::ProductOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype)
    : stream_(stream),
      layer_(layer),
      dtype_(dtype),
      m_(batch * layer.gemm->count * layer.gemm->rows),
      n_(layer.gemm->columns),
      k_(layer.gemm->depth) {
  const Layer::Gemm& gemm = *layer.gemm;
  if (gemm.batched) extra_elements_ = static_cast<double>((batch * gemm.count - 1) * gemm.columns * gemm.depth);
  if (gemm.input_elements > 0) {
    const std::int64_t saved = batch * gemm.count * (gemm.rows * gemm.depth - gemm.input_elements);
    saved_elements_ = std::max(0.0, static_cast<double>(saved));
  }
}

ProductOps::Operands ProductOps::operands(const Scratch& scratch) const {
  return {.left = scratch.left.flat_slice(0, m_ * k_).reshape({m_, k_}),
          .right = scratch.right.flat_slice(0, k_ * n_).reshape({k_, n_}),
          .result = scratch.result.flat_slice(0, m_ * n_).reshape({m_, n_})};
}

void ProductOps::launch(Op op, const char* what) const {
  const auto element_bytes = static_cast<double>(size_of(std::get<kernel::Gemm>(op.kernel).c.dtype()));
  op.name = layer_.name + what;
  op.cost.dtype = dtype_;
  op.cost.bytes += (extra_elements_ - saved_elements_) * element_bytes;
  stream_.launch(std::move(op));
}

void ProductOps::forward(const Scratch& scratch) const {
  const Operands with = operands(scratch);
  launch(op::gemm(with.result, with.left, with.right), "");
}

void ProductOps::weight_gradient(const Scratch& scratch, const Tensor& of_weights) const {
  const Operands with = operands(scratch);
  const Tensor to = of_weights ? of_weights.flat_slice(0, weights()).reshape({k_, n_}) : with.right;
  launch(op::gemm(to, with.left, with.result, true, false), " weight gradient");
}

void ProductOps::input_gradient(const Scratch& scratch) const {
  const Operands with = operands(scratch);
  launch(op::gemm(with.left, with.result, with.right, false, true), " input gradient");
}

void launch_elementwise(Stream& stream, const Layer& layer, std::int64_t batch, const Scratch& scratch, int passes) {
  const std::int64_t count = batch * layer.elementwise->elements;
  for (; passes > 0 && count > 0; passes -= 2) {  // an op reads once and writes once
    const std::int64_t part = passes == 1 ? std::max<std::int64_t>(1, count / 2) : count;
    Op op = op::scale_add(scratch.result.flat_slice(0, part), scratch.left.flat_slice(0, part), 0.5, 0);
    op.name = layer.name;
    stream.launch(std::move(op));
  }
}

}  // namespace tandem
