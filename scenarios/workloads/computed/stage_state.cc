#include "scenarios/workloads/computed/stage_state.h"

#include <algorithm>

namespace tandem {

Kept::Kept(Device& device, DType dtype, const StagePart& part, std::int64_t rows, std::int64_t columns, int passes)
    : rows_(rows), columns_(columns), slots_(static_cast<std::size_t>(passes)) {
  for (Tensor& slot : slots_) slot = device.allocate(dtype, {part.examples * rows * columns});
}

Tensor Kept::at(const Pass& pass) const {
  const bool is_forward = pass.kind == PipelineAction::Pass::forward;
  const Tensor& memory =
      is_forward && forward_ ? forward_ : slots_[static_cast<std::size_t>(pass.index) % slots_.size()];
  return memory.view(0, {pass.examples * rows_, columns_});
}

StageState::StageState(const Model& model, const TrainingSettings& training, const ComputedSettings& settings,
                       const std::vector<LayerFlow>& flows, const StagePart& part, Device& device)
    : model_(model),
      training_(training),
      settings_(settings),
      flows_(flows),
      part_(part),
      device_(device),
      dtype_(training.storage()) {
  for (std::size_t i = part.first; i < part.end; ++i) {
    layers_.push_back(divided_layer(model.layers[i], part.division, part.tensor_part));
  }
  recomputation_.emplace(layers_, training.recomputed);
  if (is_last()) losses = device.allocate(dtype_, {part.passes});
}

Kept StageState::keep(std::size_t layer, std::int64_t rows, std::int64_t columns, DType dtype, bool is_output) {
  const Layer::Again again = recomputation_->again(layer);
  const bool stays = again == Layer::Again::nothing || (is_output && again == Layer::Again::everything_but_output);
  if (stays) return {device_, dtype, part_, rows, columns, part_.live};
  Kept& shared = recomputed_[{layer - recomputation_->first_of(layer), kept_[layer]++, rows, columns}];
  if (!shared) shared = {device_, dtype, part_, rows, columns, 1};
  if (part_.owing == 0) return shared;
  Kept mine(device_, dtype, part_, rows, columns, part_.owing);
  mine.use_in_forward_passes(shared);
  return mine;
}

Kept StageState::leave(std::int64_t rows, std::int64_t columns) {
  return part_.owing > 0 ? Kept(device_, dtype_, part_, rows, columns, part_.owing) : Kept();
}

Tensor StageState::scratch(Use use, std::int64_t elements, int number) {
  Tensor& memory = scratch_[{use, number}];
  if (!memory || memory.element_count() < elements) memory = device_.allocate(dtype_, {elements});
  return memory.flat_slice(0, elements);
}

Tensor StageState::all_rows(Use use, const Tensor& part) {
  const std::int64_t rows = part.shape()[0] * part_.division.tensor, columns = part.shape()[1];
  return scratch(use, rows * columns).view(0, {rows, columns});
}

std::uint64_t StageState::dropout_seed(int layer, int number) const {
  std::uint64_t seed = settings_.seed;
  for (const int more : {step, layer, number}) {
    seed = (seed ^ static_cast<std::uint64_t>(more)) * 0x9e3779b97f4a7c15;
    seed ^= seed >> 32;
  }
  return seed;
}

void StageState::launch(Op op, const Name& name) const {
  if (!name.empty()) op.name = name;
  stream().launch(std::move(op));
}

void StageState::set_output(int producer, const Pass& pass, const Tensor& output) {
  outputs_[{producer, pass.index}] = output;
}

void StageState::set_stage_input(const Pass& pass, const Tensor& input) {
  outputs_[{kNoLayer, pass.index}] = input;
}

Tensor StageState::model_input(const Pass& pass, std::int64_t rows_of_example, std::int64_t columns) const {
  return batch.inputs.view(pass.offset * rows_of_example * columns, {pass.examples * rows_of_example, columns});
}

Tensor StageState::output(int producer, const Pass& pass) const {
  return outputs_.at({place(producer), pass.index});
}

Tensor StageState::gradient(int producer, const Tensor& like) {
  const int at = place(producer);
  if (const auto given = given_.find(at); given != given_.end()) return given->second;
  constexpr std::size_t kTurns = 3;
  std::vector<Tensor>& all = gradients_[at];
  all.resize(std::max(kTurns, static_cast<std::size_t>(part_.owing)));
  const bool is_input = at == kNoLayer;
  const bool may_be_left = !is_input && layers_[static_cast<std::size_t>(at) - part_.first].parameters() > 0;
  Tensor& memory = all[is_input ? turn_ % kTurns : may_be_left ? slot_ : 0];
  if (!memory || memory.element_count() < like.element_count()) {
    memory = device_.allocate(like.dtype(), {like.element_count()});
  }
  return memory.view(0, like.shape());
}

void StageState::set_gradient(int producer, const Tensor& gradient) {
  given_[place(producer)] = gradient;
  begin_gradient(producer);
}

void StageState::add_shortcut(int producer, const Tensor& gradient) {
  const int at = place(producer);
  Tensor& memory = shortcuts_[at];
  if (!memory || memory.element_count() < gradient.element_count()) {
    memory = device_.allocate(gradient.dtype(), {gradient.element_count()});
  }
  const bool adds = has_shortcut_[at];
  launch(op::scale_add(memory.view(0, gradient.shape()), gradient, 1, adds ? 1 : 0), "residual gradient");
  has_shortcut_[at] = true;
}

Tensor StageState::whole_gradient(int producer, const Tensor& like) {
  const int at = place(producer);
  Tensor whole = gradient(producer, like);
  if (std::exchange(has_shortcut_[at], false)) {
    launch(op::scale_add(whole, shortcuts_.at(at).view(0, like.shape()), 1, is_begun(producer) ? 1 : 0),
           "residual gradient");
  }
  return whole;
}

void StageState::begin_backward(const Pass& pass) {
  ++turn_;
  slot_ = static_cast<std::size_t>(pass.index % std::max(1, part_.owing));
  begun_.clear();
  given_.clear();
}

}  // namespace tandem
