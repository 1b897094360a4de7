// The parameters of a stage. Sums their gradients over the devices that have the same parameters, and updates them.
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
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

class StageParameters {
 public:
  struct Settings {
    DType stored = DType::f32;     // of parameters and gradients
    DType used = DType::f32;       // of the parameters that kernels read
    bool divides_state = false;    // a distributed optimizer
    bool overlaps_gather = false;  // its parameters are gathered as the next step begins; otherwise after the update
  };
  StageParameters(Device& device, GradientBuckets buckets, const Settings& settings);

  std::int64_t first_of(std::size_t layer) const { return buckets_.first_of(layer); }
  Tensor gradients(std::int64_t first, std::int64_t count) const { return gradients_.flat_slice(first, count); }
  // Returns the parameters that kernels read; an empty tensor where there are only those of another type.
  Tensor used(std::int64_t first, std::int64_t count) const;
  // Copies first values to parameters, on the compute stream. `values` has the stored type.
  void set(std::int64_t first, const Tensor& values);

  // Called before the passes of a step.
  void begin_step();
  // Lets the compute stream wait for `count` parameters from `first` on, or for what `first` is in where there are
  // none. Called before a layer's first use in a step.
  void wait_for(std::int64_t first, std::int64_t count) const;
  // Called before the backward pass that completes gradients.
  void begin() { reduced_ = 0; }
  // Sums the buckets that the gradients of `layer` complete, on the communication stream, after what the compute stream
  // holds now.
  void reduce_from(std::size_t layer);
  // Lets the compute stream wait for all sums.
  void wait_until_reduced() const;
  void update(StageModel& model);

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
  void gather();

  Device& device_;
  GradientBuckets buckets_;
  Settings settings_;
  std::vector<Dates> dates_;
  std::size_t reduced_ = 0;
  Moments moments_;
  std::int64_t steps_ = 0;
  Tensor parameters_, gradients_;
  // With a distributed optimizer: this device's parts, in both types, and the parameters that kernels read.
  Tensor my_parameters_, my_used_, used_;
};

}  // namespace tandem
