// The parameters of a stage that a group of devices keeps in pieces (ZeRO's third stage, arXiv:1910.02054; PyTorch's
// FSDP2). Each device keeps, sums and updates its part of every bucket.
//
// A bucket is gathered just before the first of its layers computes, forward and again backward, while the one before
// it is used. Two buffers hold whole buckets in turn, and two their gradients, which are summed and scattered after
// each pass; buckets of experts have buffers of their own, as has a table whose weights another layer shares, which
// stays whole during a step.
//
// Where gradients of weights are a pass of their own, buckets are gathered for the gradients of inputs and not again,
// and summed and scattered after the gradients of weights.
//
// Groups of devices may be copies of each other (hybrid sharding): they sum the gradients of their pieces.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "strategies/parallel/layout/gradient_buckets.h"
#include "strategies/parallel/stages/moments.h"
#include "strategies/parallel/stages/stage_parameters.h"

namespace tandem {

class ShardedStageParameters final : public StageParameters {
 public:
  struct Settings {
    Types types{};
    int passes = 1;                      // of a step
    std::optional<std::size_t> table{};  // the layer whose weights another one shares, if there is one
  };
  // `layers` are the device's parts of the stage's.
  ShardedStageParameters(Device& device, GradientBuckets buckets, std::span<const Layer> layers,
                         const Settings& settings);

  std::int64_t kept_of(std::int64_t /*all*/) const override { return buckets_.size_of_parts(); }
  std::int64_t first_of(std::size_t layer) const override { return buckets_.first_of(layer); }
  Tensor gradients(std::int64_t first, std::int64_t count) const override;
  Tensor used(std::int64_t first, std::int64_t count) const override;
  void set(std::int64_t first, const Tensor& values) override;

  bool sums_every_pass() const override { return true; }
  void begin_step() override { passes_ = 0; }
  void wait_for(std::int64_t /*first*/, std::int64_t /*count*/) const override {}
  void begin_layer(std::size_t layer, Way way) override;
  void begin_backward(StageModel& model) override;
  void reduce_from(std::size_t layer) override;
  void wait_until_reduced() const override;
  void update(StageModel& model) override;
  void update_on(Device& host, double share) override;

 private:
  using Bucket = GradientBuckets::Bucket;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Slot {
    Tensor memory{};
    std::size_t bucket = kNone;
    Event ready{}, used{};
  };
  struct GradientSlot {
    Tensor memory{};
    Event reduced{};
  };
  // This device's part of a bucket.
  struct Piece {
    Tensor stored{}, used{}, gradients{};
    Tensor of_pass{};  // gradients of a later pass
    Event reduced{};
  };

  const Bucket& bucket(std::size_t index) const { return buckets_.buckets()[index]; }
  std::size_t bucket_with(std::int64_t parameter) const;  // kNone: none
  std::size_t kind_of(std::size_t index) const;           // 0: dense, 1: experts, 2: the table that stays whole
  std::size_t slot_of(std::size_t index) const { return slots_of_[index]; }
  void place_in_slots();
  void gather(std::size_t index);
  void enter(std::size_t index, Way way);
  void hold_gathering();
  void accumulate(StageModel& model);
  Tensor filled(DType dtype, std::int64_t count) const;
  Stream& compute() const { return device_.compute_stream(); }
  Stream& communication() const { return device_.stream(kCommunicationStream); }

  Device& device_;
  GradientBuckets buckets_;
  Settings settings_;
  std::vector<Piece> pieces_;           // by bucket
  std::vector<std::size_t> slots_of_;   // by bucket
  std::vector<std::size_t> bucket_of_;  // by layer
  std::vector<bool> reads_table_;       // likewise
  // By kind: the buckets whose parameters are used, and whose gradients are computed.
  std::array<std::size_t, 3> current_{kNone, kNone, kNone}, current_gradients_{kNone, kNone, kNone};
  std::array<Slot, 5> slots_{};  // two of each kind in turn, and one that stays
  std::array<GradientSlot, 5> gradients_{};
  std::size_t reduced_ = 0;
  int passes_ = 0;
  Moments moments_;
  std::int64_t steps_ = 0;
};

}  // namespace tandem
