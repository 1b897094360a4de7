// What the devices of a stage exchange for a table of layers, on scratch memory: sums or rows over the tensor-parallel
// devices, keys and values over those of a sequence, tokens over those that divide the experts.
//
// Threads: the task of the stage's device; the devices of a group call the same in the same order.
#pragma once

#include "strategies/parallel/mesh_layout.h"

namespace tandem {

// The memory that all stages of a device use. `rows` is null where nothing is divided by rows, tokens or experts.
struct ExchangeMemory {
  Tensor whole{}, rows{};  // activations, of as many elements each
  Tensor row_sums{};       // f32 maxima and sums of the rows of a loss
};

class StageExchange {
 public:
  // `divides_rows`: sequence parallelism.
  StageExchange(const MeshGroups& groups, bool divides_rows) : groups_(groups), divides_rows_(divides_rows) {}

  // Called before the first step.
  void use(const ExchangeMemory& memory) { memory_ = memory; }

  // All take numbers of elements, and do nothing for 0.
  // A sum over the tensor-parallel devices, which leaves each of them its rows where rows are divided.
  void sum(std::int64_t elements, Stream& stream) const;
  // All rows from those of each tensor-parallel device.
  void gather(std::int64_t elements, Stream& stream) const;
  void sum_of_loss(std::int64_t rows, Stream& stream) const;
  // Keys or values of the whole sequence from those of each device, and the sums of their gradients to each.
  void gather_keys(std::int64_t elements, Stream& stream) const;
  void scatter_keys(std::int64_t elements, Stream& stream) const;
  // Tokens to the devices that have their experts, or back.
  void move_tokens(std::int64_t elements, Stream& stream) const;

 private:
  void gather(GroupCollectives& group, std::int64_t elements, Stream& stream) const;
  void scatter(GroupCollectives& group, std::int64_t elements, Stream& stream) const;

  MeshGroups groups_;
  bool divides_rows_;
  ExchangeMemory memory_{};
};

}  // namespace tandem
