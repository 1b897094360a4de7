// What the layers of a computed stage share: the stage's place, memory, and the passes under way.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "scenarios/workloads/computed/computed_settings.h"
#include "scenarios/workloads/computed/flow.h"
#include "strategies/parallel/stages/stage_model.h"

namespace tandem {

// A matrix that a forward pass keeps for the backward pass of the same micro-batch.
class Kept {
 public:
  Kept() = default;
  // Has `columns` for each of `rows` in an example, and room for `passes` that follow each other.
  Kept(Device& device, DType dtype, const StagePart& part, std::int64_t rows, std::int64_t columns, int passes);

  explicit operator bool() const { return !slots_.empty(); }
  // Lets forward passes use other memory of this size, which they need not keep.
  void use_in_forward_passes(const Kept& other) { forward_ = other.slots_.front(); }
  Tensor at(const Pass& pass) const;  // [rows of the pass, columns]

 private:
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<Tensor> slots_;
  Tensor forward_{};
};

// A gradient that those of weights read, which may be a later pass.
class LeftGradient {
 public:
  explicit LeftGradient(const StagePart& part) : slots_(static_cast<std::size_t>(std::max(1, part.owing))) {}

  void set(const Pass& pass, const Tensor& gradient) { slots_[slot_of(pass)] = gradient; }
  const Tensor& at(const Pass& pass) const { return slots_[slot_of(pass)]; }

 private:
  std::size_t slot_of(const Pass& pass) const { return static_cast<std::size_t>(pass.index) % slots_.size(); }

  std::vector<Tensor> slots_;
};

class StageState {
 public:
  StageState(const Model& model, const TrainingSettings& training, const ComputedSettings& settings,
             const std::vector<LayerFlow>& flows, const StagePart& part, Device& device);

  Device& device() const { return device_; }
  Stream& stream() const { return device_.compute_stream(); }
  const StagePart& part() const { return part_; }
  const Model& model() const { return model_; }
  const TrainingSettings& training() const { return training_; }
  const ComputedSettings& settings() const { return settings_; }
  const LayerFlow& flow(std::size_t layer) const { return flows_[part_.first + layer]; }
  const Layer& whole(std::size_t layer) const { return model_.layers[part_.first + layer]; }
  const Layer& layer(std::size_t layer) const { return layers_[layer]; }  // the device's part
  std::size_t layers() const { return layers_.size(); }
  DType dtype() const { return dtype_; }
  bool is_last() const { return part_.end == model_.layers.size(); }

  // Returns room for what a layer keeps. Layers of blocks that are computed again share it with the same layers of
  // other blocks, except for `is_output` of a block; where gradients of weights are left for later, in forward passes
  // only.
  Kept keep(std::size_t layer, std::int64_t rows, std::int64_t columns, DType dtype, bool is_output);
  // Returns room for what backward passes leave for the gradients of weights; there is none where they leave nothing.
  Kept leave(std::int64_t rows, std::int64_t columns);
  // Memory for the work of one layer; the same each time.
  enum class Use : std::uint8_t { rows, of_rows, input, of_input, keys, other, experts, quantised };
  Tensor scratch(Use use, std::int64_t elements, int number = 0);
  // Memory for the rows of all tensor-parallel devices, of which this one has `part`.
  Tensor all_rows(Use use, const Tensor& part);
  // Seeds a dropout, `number` among those of a layer, for this step.
  std::uint64_t dropout_seed(int layer, int number) const;
  // Launches an op under the name of a layer's part.
  void launch(Op op, const Name& name = {}) const;

  // The outputs of layers. `producer` is a layer of the model; one of an earlier stage is what that stage sent.
  void set_output(int producer, const Pass& pass, const Tensor& output);
  Tensor output(int producer, const Pass& pass) const;
  void set_stage_input(const Pass& pass, const Tensor& input);
  // Rows of the model's input for a pass: [rows, columns].
  Tensor model_input(const Pass& pass, std::int64_t rows_of_example, std::int64_t columns) const;
  // The gradients of outputs in the pass under way. The first contribution replaces what was there: see is_begun().
  Tensor gradient(int producer, const Tensor& like);
  void set_gradient(int producer, const Tensor& gradient);
  bool is_begun(int producer) const { return begun_.contains(place(producer)); }
  void begin_gradient(int producer) { begun_[place(producer)] = true; }
  // What residuals add to a gradient, once it is whole.
  void add_shortcut(int producer, const Tensor& gradient);
  Tensor whole_gradient(int producer, const Tensor& like);
  void begin_backward(const Pass& pass);

  int step = -1;
  Batch batch{};
  Tensor losses{};

 private:
  int place(int producer) const { return producer < static_cast<int>(part_.first) ? kNoLayer : producer; }

  const Model& model_;
  const TrainingSettings& training_;
  const ComputedSettings& settings_;
  const std::vector<LayerFlow>& flows_;
  StagePart part_;
  Device& device_;
  DType dtype_;
  std::vector<Layer> layers_;
  std::optional<Recomputation> recomputation_{};
  std::map<std::pair<Use, int>, Tensor> scratch_;
  // By the layer's place among those that are computed again with it, number and size.
  std::map<std::tuple<std::size_t, int, std::int64_t, std::int64_t>, Kept> recomputed_;
  std::map<std::size_t, int> kept_;                // how many, by layer
  std::map<std::pair<int, int>, Tensor> outputs_;  // by producer and pass
  // By producer, where it has parameters for each pass that may be left; the stage input's take turns, as they are
  // sent.
  std::map<int, std::vector<Tensor>> gradients_;
  std::map<int, Tensor> shortcuts_, given_;
  std::map<int, bool> begun_, has_shortcut_;
  std::size_t turn_ = 0, slot_ = 0;  // of the pass under way
};

}  // namespace tandem
