// The parameters of a stage on one device, their gradients and their updates.
//
// Threads: the task of the stage's device. The devices of a group make the same calls in the same order.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

// Returns how many elements of two bytes have as many bytes as a part of a bucket that is gathered, where it has one
// byte for each parameter or two.
inline std::int64_t gathered_count(std::int64_t part, bool in_bytes) {
  return in_bytes ? (part + 1) / 2 : part;
}

// Parameters are counted as GradientBuckets counts them.
class StageParameters {
 public:
  struct Types {
    DType stored = DType::f32;   // of what a device keeps, and of gradients
    DType used = DType::f32;     // of the parameters that kernels read
    bool gathers_bytes = false;  // quantised parameters have one byte each on their way
  };
  using Way = PipelineAction::Pass;

  virtual ~StageParameters() = default;

  // Returns how many of these, which are all of the stage's, the device keeps from step to step.
  virtual std::int64_t kept_of(std::int64_t all) const = 0;
  virtual std::int64_t first_of(std::size_t layer) const = 0;
  // Valid in the work of the layers that they belong to, which begin_layer() precedes.
  virtual Tensor gradients(std::int64_t first, std::int64_t count) const = 0;
  // Returns the parameters that kernels read; an empty tensor where there are only those of another type.
  virtual Tensor used(std::int64_t first, std::int64_t count) const = 0;
  // Copies first values to parameters, on the compute stream. `values` has the stored type.
  virtual void set(std::int64_t first, const Tensor& values) = 0;

  // Whether gradients are summed in every pass; otherwise in the one that completes them.
  virtual bool sums_every_pass() const = 0;

  // Called before the passes of a step.
  virtual void begin_step() = 0;
  // Lets the compute stream wait for `count` parameters from `first` on, or for what `first` is in where there are
  // none. Called before a layer's first use in a step.
  virtual void wait_for(std::int64_t first, std::int64_t count) const = 0;
  // Called before the work of a layer in every pass.
  virtual void begin_layer(std::size_t layer, Way way) = 0;
  // Called before the backward pass that begins gradients, or before each where they are summed in every pass. Where
  // gradients of weights are a pass of their own, that one is meant.
  virtual void begin_backward(StageModel& model) = 0;
  // Sums the buckets that the gradients of `layer` complete, on the communication stream, after what the compute stream
  // holds now.
  virtual void reduce_from(std::size_t layer) = 0;
  // Lets the compute stream wait for all sums.
  virtual void wait_until_reduced() const = 0;
  virtual void update(StageModel& model) = 0;
  // Called before the first step: `host`, the worker's CPU, keeps the optimizer's state of this share of the
  // parameters, and updates them. UsageError where that is not possible.
  virtual void update_on(Device& host, double share) = 0;
};

}  // namespace tandem
