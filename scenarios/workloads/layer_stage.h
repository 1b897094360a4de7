// One pipeline stage of a table of layers on one device of a mesh: the device's parts of some consecutive layers, on
// its rows of the batch, one micro-batch after another. The work is that of LayersWorkload, on scratch memory.
//
// Threads: one task per step and device. The devices of a group call the same collectives in the same order.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scenarios/layer_division.h"
#include "scenarios/workloads/layer_ops.h"
#include "scenarios/workloads/layer_work.h"
#include "scenarios/workloads/stage_exchange.h"
#include "scenarios/workloads/stage_parameters.h"
#include "strategies/parallel/mesh_layout.h"
#include "strategies/parallel/stage_channels.h"

namespace tandem {

// The memory that all stages of a device use.
struct StageMemory {
  Scratch scratch{};
  ExchangeMemory exchange{};
};

class LayerStage final : public StageChunk {
 public:
  // `ends` is the group of the first and the last stage where these have the same embedding, else null. `live` is how
  // many micro-batches are between their two passes at the same time.
  LayerStage(const MeshSeat& seat, const LayersSettings& settings, const ParallelOptions& options, int stage,
             GroupCollectives* ends, int live);

  const std::vector<Layer>& layers() const { return parts_; }     // this device's parts
  std::int64_t examples() const { return examples_; }             // of a micro-batch
  std::int64_t exchanged_elements() const { return exchanged_; }  // in one exchange, at most
  std::int64_t loss_rows() const;
  std::int64_t parameters() const { return tied_ + owned_; }
  // Called before the first step.
  void use(const StageMemory& memory);

  void begin_step() { parameters_->begin_step(); }  // called before the passes
  void forward(int micro_batch) override;
  void backward(int micro_batch) override;
  // Called after the passes: first reduce_tied() of all stages of the device, then update().
  void reduce_tied();
  void update();

 private:
  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == options_.stages(); }
  bool divides_rows() const { return division_.divides_rows; }
  Stream& compute() const { return device_.compute_stream(); }
  void make_work(std::size_t first, std::size_t end);
  void layer_forward(std::size_t index) const;
  void layer_backward(std::size_t index, int micro_batch);
  void launch_gradients(std::size_t index) const;
  void launch_gradients_of_attention(std::size_t index) const;
  void launch(std::size_t index, std::span<const LayerKernel> kernels, bool (*is_wanted)(LayerKernel::Part)) const;
  void reduce_gradients_of_rows();
  LayerOps ops(std::size_t index) const;

  Device& device_;
  const LayersSettings& settings_;
  ParallelOptions options_;
  LayerDivision division_;
  MeshPlace place_;
  MeshGroups groups_;
  GroupCollectives* ends_;
  StageExchange exchange_;
  int stage_;
  std::int64_t examples_;
  DType storage_, parameter_type_;
  std::vector<Layer> parts_;
  std::vector<LayerWork> work_;
  std::vector<bool> of_experts_;  // whether a layer's experts are divided
  std::int64_t owned_ = 0;        // parameters of the layers
  std::int64_t tied_ = 0;         // parameters of the last stage's copy of the embedding, before the others
  std::int64_t shared_ = 0;       // elements that the two ends sum
  std::int64_t of_rows_ = 0;      // parameters whose gradients the tensor-parallel devices sum after the passes
  std::optional<StageParameters> parameters_;
  StageChannels channels_;
  Scratch scratch_;
  std::int64_t exchanged_ = 1;
};

}  // namespace tandem
