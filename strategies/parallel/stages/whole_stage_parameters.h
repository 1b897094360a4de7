// The parameters of a stage that each of its devices has as a whole. Sums their gradients over the devices that have
// the same parameters, and updates them.
//
// With a distributed optimizer (ZeRO's first stage, arXiv:1910.02054; Megatron-LM's --use-distributed-optimizer) these
// devices divide each bucket: each of them gets the sums of its part and updates that part, and all of them then gather
// the parameters.
//
// Threads: the task of the stage's device. The devices of a group make the same calls in the same order.
#pragma once

#include <vector>

#include "engine/device.h"
#include "strategies/model/training_settings.h"
#include "strategies/parallel/layout/gradient_buckets.h"
#include "strategies/parallel/stages/moments.h"
#include "strategies/parallel/stages/stage_parameters.h"

namespace tandem {

class WholeStageParameters final : public StageParameters {
 public:
  struct Settings {
    Types types{};
    bool divides_state = false;    // a distributed optimizer
    bool overlaps_gather = false;  // its parameters are gathered as the next step begins; otherwise after the update
  };
  WholeStageParameters(Device& device, GradientBuckets buckets, const Settings& settings);

  std::int64_t kept_of(std::int64_t all) const override { return all; }
  std::int64_t first_of(std::size_t layer) const override { return buckets_.first_of(layer); }
  Tensor gradients(std::int64_t first, std::int64_t count) const override {
    return gradients_.flat_slice(first, count);
  }
  Tensor used(std::int64_t first, std::int64_t count) const override;
  void set(std::int64_t first, const Tensor& values) override;

  bool sums_every_pass() const override { return false; }
  void begin_step() override;
  void wait_for(std::int64_t first, std::int64_t count) const override;
  void begin_layer(std::size_t /*layer*/, Way /*way*/) override {}
  void begin_backward(StageModel& /*model*/) override { reduced_ = 0; }
  void reduce_from(std::size_t layer) override;
  void wait_until_reduced() const override;
  void update(StageModel& model) override;
  void update_on(Device& host, double share) override;

 private:
  using Bucket = GradientBuckets::Bucket;
  // The events that a bucket has been summed and that its parameters have been gathered.
  struct Dates {
    Event reduced{}, gathered{};
  };
  bool is_divided(const Bucket& bucket) const { return settings_.divides_state && bucket.group->size() > 1; }
  std::int64_t first_of_part(const Bucket& bucket) const;
  Tensor my_gradients(const Bucket& bucket) const;
  LayerTensors updated(const Bucket& bucket) const;
  Tensor read_parameters(const Bucket& bucket) const;
  void update_here(std::size_t piece, const LayerTensors& tensors, StageModel& model);
  void update_on_host(std::size_t piece, const LayerTensors& tensors, const Tensor& read, StageModel& model);
  void gather();

  // What the host has of a bucket.
  struct OnHost {
    Tensor parameters{}, gradients{};
    Tensor read{};  // of the type that kernels read
  };

  Device& device_;
  GradientBuckets buckets_;
  Settings settings_;
  std::vector<Dates> dates_;
  std::size_t reduced_ = 0;
  Moments moments_;
  std::int64_t steps_ = 0;
  Device* host_ = nullptr;
  double host_share_ = 0;
  std::vector<OnHost> on_host_;  // by bucket
  Moments host_moments_;
  Tensor parameters_, gradients_;
  // With a distributed optimizer: this device's parts, in both types, and the parameters that kernels read.
  Tensor my_parameters_, my_used_, used_;
};

}  // namespace tandem
