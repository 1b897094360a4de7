// What a stage shares and exchanges with the stages before and after it, and with others of its device.
#include <algorithm>
#include <tuple>
#include <utility>

#include "strategies/parallel/stages/stage.h"
#include "strategies/parallel/stages/stage_joint.h"

namespace tandem {

void Stage::join(Stage& before, Stage& after) {
  before.after_ = after.before_ = std::make_shared<StageJoint>(before.device_);
}

void Stage::share_table_of(Stage& other) {
  table_of_ = &other;
  other.lends_table_ = true;
}

// With a later stage that adds to them, nobody knows whose pass writes the gradients of a table first.
void Stage::begin_step(const Batch& batch) {
  parameters_->begin_step();
  if (lends_table_) {
    const std::size_t mine = *table();
    compute().launch(op::fill(parameters_->gradients(parameters_->first_of(mine), parts_[mine].parameters()), 0));
  }
  computation_->begin_step(batch);
}

Tensor Stage::receive_input(const Pass& pass) {
  if (before_) return before_->outputs.take();
  return channels_.input ? channels_.input->receive(pass.examples) : Tensor();
}

void Stage::send_output(const Pass& pass) {
  if (after_) after_->outputs.put(computation_->output(pass));
  if (!channels_.output) return;
  channels_.output->wait_for_room();
  channels_.output->send(computation_->output(pass), pass.examples);
}

void Stage::release_input() {
  if (before_) before_->outputs.release();
  if (channels_.input) channels_.input->release();
}

Tensor Stage::receive_gradient(const Pass& pass) {
  if (after_) return after_->gradients.take();
  return channels_.gradient ? channels_.gradient->receive(pass.examples) : Tensor();
}

// The gradients of the stage's output have been read.
void Stage::send_gradient(const Pass& pass) {
  if (after_) after_->gradients.release();
  if (channels_.gradient) channels_.gradient->release();
  if (before_) before_->gradients.put(computation_->input_gradient(pass));
  if (!channels_.input) return;
  channels_.input_gradient->wait_for_room();
  channels_.input_gradient->send(computation_->input_gradient(pass), pass.examples);
}

void Stage::evaluate(const PipelineAction& action) {
  Progress progress = begin(action, false);
  progress.keeps_nothing_ = true;
  forward(progress);
  release_input();
}

std::optional<std::size_t> Stage::table() const {
  const auto table = std::ranges::find_if(parts_, [](const Layer& part) { return !!part.embedding; });
  if (table == parts_.end()) return std::nullopt;
  return static_cast<std::size_t>(table - parts_.begin());
}

// The table whose weights another layer of the stage shares.
std::optional<std::size_t> Stage::shared_table() const {
  return std::ranges::any_of(parts_, &Layer::shared_weights) ? table() : std::nullopt;
}

// Returns where shared weights are: in the last stage the copy before the layers' own parameters, or the table of an
// earlier stage on this device; elsewhere the table's.
std::pair<const StageParameters*, std::int64_t> Stage::shared_parameters() const {
  if (tied_ > 0) return {parameters_.get(), 0};
  if (table_of_ != nullptr)
    return {table_of_->parameters_.get(), table_of_->parameters_->first_of(*table_of_->table())};
  if (const auto mine = table()) return {parameters_.get(), parameters_->first_of(*mine)};
  return {nullptr, 0};
}

void Stage::wait_for_shared_table() const {
  const std::size_t table = *table_of_->table();
  table_of_->parameters_->wait_for(table_of_->parameters_->first_of(table), table_of_->parts_[table].parameters());
}

// Parameters that were gathered for the gradients of inputs may be gone in those of weights, which read none.
LayerTensors Stage::tensors(std::size_t layer, const Pass& pass) const {
  const bool has_parameters = pass.kind != PipelineAction::Pass::weights || !parameters_->sums_every_pass();
  const auto slice = [=](const StageParameters& parameters, std::int64_t first, std::int64_t count) {
    const Tensor used = has_parameters ? parameters.used(first, count) : Tensor();
    return std::pair(used, parameters.gradients(first, count));
  };
  LayerTensors tensors;
  const std::int64_t count = parts_[layer].parameters();
  if (count > 0)
    std::tie(tensors.parameters, tensors.gradients) = slice(*parameters_, parameters_->first_of(layer), count);
  if (!parts_[layer].shared_weights || parts_[layer].is_frozen) return tensors;
  const auto [of, first] = shared_parameters();
  if (of == nullptr) return tensors;
  const Layer::Gemm& gemm = *parts_[layer].gemm;
  std::tie(tensors.shared_parameters, tensors.shared_gradients) = slice(*of, first, gemm.depth * gemm.columns);
  return tensors;
}

}  // namespace tandem
