// One device's share of parameters that a group of devices keeps in pieces (ZeRO, stage 3: arXiv:1910.02054).
//
// Parameters come in units, usually layers, which are gathered, used and reduced as a whole. A unit is padded to a
// multiple of the group's size and divided into equal pieces, one per device. Each device keeps and updates its piece
// together with the piece's momentum. Only two buffers hold whole units, in turn: while one unit is used, the next
// one's parameters arrive. Gradients have two buffers as well: while one unit's are computed, the previous unit's are
// summed. A unit that layers of other units need, too, may have buffers of its own, and stays whole during a step.
//
// Every device of the group makes the same calls in the same order. All calls are asynchronous, in stream order.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "strategies/parallel/layout/group_collectives.h"
#include "strategies/parallel/stages/moments.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

class ShardedParameters {
 public:
  struct Unit {
    std::int64_t count = 0;                                       // number of parameters that learn
    std::int64_t frozen = 0;                                      // of others, which are gathered with them
    std::function<double(std::int64_t element)> initial_value{};  // empty: zeros
  };
  // `host` is the worker's CPU, on which initial values are computed. `adds_passes`: whether gradients of several
  // passes are added up, by accumulate(). `lasting`: the unit that stays whole; -1: none.
  ShardedParameters(Device& device, Device& host, GroupCollectives& group, int rank, std::span<const Unit> units,
                    DType dtype, bool adds_passes, int lasting);

  int units() const { return static_cast<int>(counts_.size()); }

  // Starts to gather a unit on the communication stream, unless its buffer holds it already. Units whose numbers have
  // the same parity share a buffer, except for the lasting one.
  void prefetch(int unit);
  // Returns the parameters of a whole unit that learn, flat, for work that is issued to the compute stream before
  // release().
  Tensor acquire(int unit);
  void release(int unit);

  // Returns room for a whole unit's gradients, flat, for work that is issued to the compute stream before
  // reduce_gradients().
  Tensor gradients(int unit);
  // Starts to sum the gradients of a pass over the group; each device receives the sum for its piece.
  void reduce_gradients(int unit, bool is_first_pass);
  // Adds the sums of a pass to those of the passes before it. `parameters`: how many the device has.
  void accumulate(StageModel& model, std::int64_t parameters);
  // Changes every unit's piece by its gradients, after they have been summed.
  void update(StageModel& model);

  const Tensor& piece(int unit) const { return pieces_.at(static_cast<std::size_t>(unit)).parameters; }
  std::int64_t count(int unit) const { return counts_.at(static_cast<std::size_t>(unit)); }

 private:
  struct Piece {
    Tensor gathered{};                 // what is gathered: its begin are the parameters that learn
    Tensor parameters{}, gradients{};  // empty where nothing learns
    Tensor of_pass{};                  // gradients of a later pass, where passes are added up
    Event reduced{};
  };
  struct Buffer {
    Tensor memory;
    int unit = -1;
    Event ready{}, used{};
  };
  struct GradientBuffer {
    Tensor memory;
    Event reduced{};
  };

  std::int64_t gathered(int unit) const {
    return pieces_.at(static_cast<std::size_t>(unit)).gathered.element_count() * group_.size();
  }
  std::int64_t padded(int unit) const { return learns(unit) ? piece(unit).element_count() * group_.size() : 0; }
  bool learns(int unit) const { return static_cast<bool>(piece(unit)); }
  std::size_t slot(int unit) const { return unit == lasting_ ? 2 : static_cast<std::size_t>(unit % 2); }
  Piece make_piece(const Unit& unit, int rank, DType dtype, Device& host) const;
  Tensor filled(DType dtype, std::int64_t count) const;
  // Discards what has been gathered, since the compute stream has changed the pieces, and lets later gathering wait for
  // that change.
  void hold_gathering();
  Stream& compute() const { return device_.compute_stream(); }
  Stream& communication() const { return device_.stream(kCommunicationStream); }

  Device& device_;
  GroupCollectives& group_;
  bool adds_passes_;
  std::vector<std::int64_t> counts_;
  std::vector<Piece> pieces_;
  Moments moments_;
  std::int64_t steps_ = 0;
  int lasting_;
  std::array<Buffer, 3> buffers_;  // in turn, and of the lasting unit
  std::array<GradientBuffer, 3> gradients_;
};

}  // namespace tandem
