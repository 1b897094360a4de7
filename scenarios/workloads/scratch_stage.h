// A stage of a table of layers on memory without meaning: matrix products and memory traffic with the sizes of the
// model. Values mean nothing; times, sizes and exchanges are those of the model. Memory holds operands that all layers
// share; activations are not kept.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/layer_kernels.h"
#include "scenarios/workloads/layer_ops.h"
#include "strategies/parallel/stages/layer_exchanges.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

// The memory that all stages of a device use.
struct ScratchMemory {
  Scratch operands{};
  // For exchanges, as many elements each; `rows` is empty where no rows, tokens or experts are divided.
  Tensor whole{}, rows{};
  Tensor row_sums{};  // f32 maxima and sums of the rows of a loss
};

class ScratchStage final : public StageModel {
 public:
  ScratchStage(const LayersSettings& settings, const StagePart& part, Device& device);

  const std::vector<Layer>& layers() const { return layers_; }  // the device's parts
  const StagePart& part() const { return part_; }
  std::int64_t exchanged_elements() const;  // in one exchange, at most
  std::int64_t loss_rows() const;
  double most_moved_bytes() const;  // by one kernel, or by the updates of all parameters
  void use(std::shared_ptr<const ScratchMemory> memory) { memory_ = std::move(memory); }

  void begin_step(const Batch& batch) override;
  Tensor losses() const override { return {}; }
  void begin_forward(const Pass& pass, const Tensor& input) override;
  Tensor output(const Pass& /*pass*/) override { return {}; }
  void begin_backward(const Pass& /*pass*/, const Tensor& /*of_output*/) override {}
  Tensor input_gradient(const Pass& /*pass*/) override { return {}; }
  void launch(Work work, std::size_t layer, const Pass& pass, const LayerTensors& tensors) override;
  Exchanged operands(Exchange exchange, std::size_t layer, const Pass& pass) override;
  int moments() const override { return 0; }
  void update(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
              std::int64_t step) override;
  void finish_update(std::int64_t parameters, const Tensor& over) override;
  void accumulate(std::int64_t parameters, std::span<const Tensor> sums, std::span<const Tensor> parts) override;

 private:
  // The kernels of a layer, by Work.
  using LayerKernelsByWork =
      std::array<std::vector<LayerKernel>, static_cast<std::size_t>(Work::gradients_of_tokens) + 1>;
  // What the stage does in a pass over some number of examples.
  struct PassWork {
    std::vector<LayerKernelsByWork> kernels{};
    std::vector<LayerExchanges> exchanges{};
  };
  const PassWork& work_of(std::int64_t examples);
  LayerKernelsByWork kernels_of(std::size_t layer, const LayerKernels& kernels, const LayerExchanges& exchanges) const;
  void add_rounds(std::size_t layer, const LayerKernels& kernels, LayerKernelsByWork& all) const;
  void add_orders(std::size_t layer, const LayerKernels& kernels, const LayerExchanges& exchanges,
                  LayerKernelsByWork& all) const;
  void add_host_time(std::size_t layer, LayerKernelsByWork& kernels) const;
  void add_adapter(std::size_t layer, const LayerKernels& kernels, bool with_input_gradient,
                   LayerKernelsByWork& all) const;
  int row_parts_of_adapter(const Layer& part) const;
  void quantise(std::size_t layer, const LayerKernels& kernels, LayerKernelsByWork& all) const;
  bool adds_in_products() const;
  double added_bytes(const Layer& layer) const;
  Exchanged rows_of(std::int64_t elements, int parts) const;
  Exchanged rows_to_experts(std::int64_t elements) const;

  std::vector<std::uint8_t> has_quantised_weights_{};  // whether, of each layer in this step
  LayersSettings settings_;
  StagePart part_;
  Device& device_;
  std::vector<Layer> layers_;
  std::map<std::size_t, Layer> rounds_;    // of attention whose keys go round: its products in a round
  std::map<std::int64_t, PassWork> work_;  // by the examples of a pass
  std::shared_ptr<const ScratchMemory> memory_{};
};

}  // namespace tandem
