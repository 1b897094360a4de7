// A model and its data, as strategies that divide the model train them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strategies/model/training_settings.h"
#include "strategies/parallel/stages/first_values.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

// Elements of a batch that one device reads: rows of it and, with context parallelism, a part of each sequence.
struct BatchPart {
  std::int64_t first = 0, examples = 1;
  int context_parts = 1, context_part = 0;
  bool has_inputs = false, has_labels = false;  // the first and the last stage
};

class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  virtual const Model& model() const = 0;
  virtual const TrainingSettings& settings() const = 0;
  // Whether losses and gradients are those of the model; false: its stages work on memory without meaning, where only
  // times and sizes matter.
  virtual bool has_values() const = 0;

  // Makes the stages of one device, which may share memory. `host` is the worker's CPU.
  virtual std::vector<std::unique_ptr<StageModel>> make_stages(Device& device, Device& host,
                                                               std::span<const StagePart> parts) = 0;
  // Returns the first value of each of a device's parameters of a layer, flat and in the order of Layer::tensors; an
  // empty function for zeros. `part` says which part of the layer the device has.
  virtual FirstValues first_values(std::size_t layer, const StagePart& part) const = 0;

  // Returns the bytes that one example's forward pass keeps for its backward pass up to each of some layers, itself
  // included; empty where that is not known. The parts as DeviceShare has them.
  virtual std::vector<std::int64_t> kept_bytes(std::span<const Layer> /*layers*/, int /*row_parts*/,
                                               int /*expert_row_parts*/, int /*key_parts*/) const {
    return {};
  }

  // Makes the batch of a step on `host`, for host_batch() until the next call. One task at a time.
  virtual void make_batch(int step, Device& host) = 0;
  // Returns a part of that batch, on `host`.
  virtual Batch host_batch(const BatchPart& part, Device& host) = 0;
};

}  // namespace tandem
