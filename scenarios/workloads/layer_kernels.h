// The kernels that a framework with a given stack launches for the layers of a model, forward and backward, with the
// shapes and bytes from which a simulated device derives their times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/kernel_shape.h"
#include "engine/base/name.h"
#include "strategies/model/model.h"
#include "topologies/base/dtype.h"

namespace tandem {

// One launch, or several that work on the same elements one after the other.
struct LayerKernel {
  // table_gradient: of an embedding, which moves memory, too.
  enum class Part : std::uint8_t { product, weight_gradient, input_gradient, table_gradient, memory };
  // The layer itself, or one of the products of its adapter.
  enum class Of : std::uint8_t { layer, down_adapter, up_adapter };
  Part part = Part::memory;
  Of of = Of::layer;
  Name name;
  KernelShape shape{};          // of a product or convolution
  std::optional<DType> rate{};  // of a product whose operands are quantised
  double computed = 1;          // the share of a product that a causal mask leaves
  double unmoved = 0;           // elements of its operands and result that stay on the chip: scores of flash attention
  double added = 0;             // bytes more of a product that adds to gradients of earlier passes
  double bytes = 0;             // read plus written, of kernels that only move memory
  int kernels = 1;              // of a product: equal ones, each with its part of the work
  bool has_wide_loads = false;  // of memory
  double issue_s = 0;           // host time of the framework
};

class LayerKernels {
 public:
  // Makes kernels for `batch` examples. With `eager`, the framework issues each kernel by itself, in Python.
  LayerKernels(const Stack& stack, DType dtype, std::int64_t batch, bool eager = false);

  std::int64_t batch() const { return batch_; }
  double issue_s() const { return issue_s_; }  // of one kernel
  std::vector<LayerKernel> forward(const Layer& layer) const;
  // `with_input` is false for the first layer, whose input needs no gradient.
  std::vector<LayerKernel> backward(const Layer& layer, bool with_input) const;
  // The kernels of a layer's adapter, of those that have one: its products and the sum with the layer's own result; the
  // gradients of its parameters; and its part of the gradient of the input. `row_parts`: devices that divide the rows
  // of the result.
  std::vector<LayerKernel> adapter_forward(const Layer& layer, int row_parts) const;
  std::vector<LayerKernel> adapter_weights(const Layer& layer, int row_parts, bool goes_back) const;
  std::vector<LayerKernel> adapter_input(const Layer& layer, int row_parts) const;

 private:
  LayerKernel product(const Layer& layer, LayerKernel::Part part) const;
  bool is_in_flash_attention(const Layer& layer) const;
  double unmoved_elements(const Layer& layer) const;
  ConvolutionShape convolution(const Layer& layer, LayerKernel::Part part) const;
  AttentionShape attention(const Layer& layer, LayerKernel::Part part) const;
  ProductShape matrix_product(const Layer::Gemm& gemm, LayerKernel::Part part) const;
  LayerKernel memory(const std::string& name, double bytes, int kernels) const;
  LayerKernel down(const Layer& layer, LayerKernel::Part part) const;
  LayerKernel up(const Layer& layer, LayerKernel::Part part, int row_parts) const;
  LayerKernel sum(const std::string& name, std::int64_t elements) const;
  void add_passes(const Layer& layer, double passes, std::vector<LayerKernel>& kernels) const;
  void add_operations(const Layer& layer, bool forward, std::vector<LayerKernel>& kernels) const;

  Stack stack_;
  double element_bytes_;
  std::int64_t batch_;
  double issue_s_;  // of one kernel
};

}  // namespace tandem
