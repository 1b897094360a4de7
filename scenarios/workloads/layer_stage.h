// One pipeline stage of a table of layers on one device of a mesh: some layers, the device's part of each of them, on
// its rows of the batch, one micro-batch after another. The work is that of LayersWorkload, on scratch memory.
//
// Threads: one task per step and device. The devices of a group call the same collectives in the same order.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/workloads/layer_ops.h"
#include "strategies/parallel/mesh_layout.h"
#include "strategies/parallel/stage_channels.h"

namespace tandem {

// The memory that all stages of a device use: operands, and what tensor-parallel devices sum.
struct StageMemory {
  Scratch scratch{};
  Tensor exchange{}, row_sums{};  // activations; f32 maxima and sums of the rows of a loss
};

class LayerStage final : public StageChunk {
 public:
  // `ends`: of the first and the last stage, whose embeddings are the same; else null. `live`: how many micro-batches
  // are between their two passes at the same time.
  LayerStage(const MeshSeat& seat, const LayersSettings& settings, const ParallelOptions& options, int stage,
             GroupCollectives* ends, int live);

  const std::vector<Layer>& layers() const { return parts_; }  // this device's parts
  std::int64_t examples() const { return examples_; }          // of a micro-batch
  std::int64_t exchanged_elements() const;                     // at most, at a time
  std::int64_t loss_rows() const;
  std::int64_t parameters() const { return tied_ + owned_; }
  // Called before the first step.
  void use(const StageMemory& memory) { memory_ = memory; }

  void forward(int micro_batch) override;
  void backward(int micro_batch) override;
  // Called after the passes: reduce_tied() of all stages of the device, then update().
  void reduce_tied();
  void update();

 private:
  struct Work {
    std::vector<LayerKernel> forward{}, backward{};
    std::int64_t summed_output = 0, summed_gradient = 0;  // elements that the tensor-parallel devices sum; 0: none
    std::int64_t loss_rows = 0;                           // whose maxima and sums they exchange
    std::int64_t first_gradient = 0;                      // among the stage's, which begin with the last layer's
    std::optional<std::size_t> recomputed_from{};         // the block that ends here is computed again
  };
  struct Bucket {
    std::int64_t first = 0, count = 0;  // of the gradients
    Event reduced{};
  };

  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == options_.stages(); }
  Stream& compute() const { return device_.compute_stream(); }
  void make_work(std::size_t first, std::size_t end);
  void allocate();
  void divide_into_buckets();
  void layer_forward(std::size_t index) const;
  void layer_backward(std::size_t index, int micro_batch);
  void launch_gradients(std::size_t index) const;
  void sum(std::int64_t elements, Stream& stream) const;
  void reduce_until(std::int64_t known);
  LayerOps ops(std::size_t index) const;

  Device& device_;
  const LayersSettings& settings_;
  ParallelOptions options_;
  MeshPlace place_;
  MeshGroups groups_;
  GroupCollectives* ends_;
  int stage_;
  std::int64_t examples_;
  DType storage_, parameter_type_;
  std::vector<Layer> parts_;
  std::vector<Work> work_;
  std::int64_t owned_ = 0;   // parameters of the layers
  std::int64_t tied_ = 0;    // of the copy of the embedding that the last stage keeps, before the others
  std::int64_t shared_ = 0;  // elements that the two ends sum
  Tensor parameters_, gradients_;
  std::vector<Bucket> buckets_;
  std::size_t reduced_buckets_ = 0;
  StageChannels channels_;
  StageMemory memory_;
};

}  // namespace tandem
