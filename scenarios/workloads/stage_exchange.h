// The exchanges between devices of a stage for a table of layers, on scratch memory: sums or rows among the
// tensor-parallel devices, keys and values among those of a sequence, tokens among those that divide the experts.
//
// Threads: the task of the stage's device. The devices of a group make the same calls in the same order.
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

  // The functions below take numbers of elements, and do nothing for 0. Sums over the tensor-parallel devices; where
  // rows are divided, each of them gets its own rows of the sum.
  void sum(std::int64_t elements, Stream& stream) const;
  // Gathers all rows from the tensor-parallel devices.
  void gather(std::int64_t elements, Stream& stream) const;
  void sum_of_loss(std::int64_t rows, Stream& stream) const;
  // Gather keys or values of the whole sequence from its devices, and scatter the sums of their gradients to them.
  void gather_keys(std::int64_t elements, Stream& stream) const;
  void scatter_keys(std::int64_t elements, Stream& stream) const;
  // Moves tokens to the devices that have their experts, or back.
  void move_tokens(std::int64_t elements, Stream& stream) const;

 private:
  void gather(GroupCollectives& group, std::int64_t elements, Stream& stream) const;
  void scatter(GroupCollectives& group, std::int64_t elements, Stream& stream) const;

  MeshGroups groups_;
  bool divides_rows_;
  ExchangeMemory memory_{};
};

}  // namespace tandem
