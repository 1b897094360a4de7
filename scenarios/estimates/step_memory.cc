#include "scenarios/estimates/step_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

using Way = PipelineAction::Pass;

// Where a division does not say the order of its passes: as many as are under way at the same time go forward, then
// back.
std::vector<PipelineAction> passes_of(const DeviceShare& share) {
  std::vector<PipelineAction> actions = share.actions;
  std::erase_if(actions, [&](const PipelineAction& action) {  // a division of one's own may leave stages out
    return static_cast<std::size_t>(action.chunk) >= share.stages.size();
  });
  if (!actions.empty()) return actions;
  for (int chunk = 0; chunk < static_cast<int>(share.stages.size()); ++chunk) {
    for (int i = 0; i < share.stages[static_cast<std::size_t>(chunk)].live; ++i) {
      actions.push_back({Way::forward, i, chunk});
    }
  }
  for (std::size_t i = actions.size(); i-- > 0;)
    actions.push_back({Way::backward, actions[i].micro_batch, actions[i].chunk});
  return actions;
}

std::size_t largest_moment(const std::vector<PassMemory::Moment>& moments, bool is_reversed) {
  std::size_t most = is_reversed && !moments.empty() ? moments.size() - 1 : 0;
  const auto bytes = [&](std::size_t i) { return moments[i].kept + moments[i].workspace; };
  for (std::size_t n = 0; n < moments.size(); ++n) {
    const std::size_t i = is_reversed ? moments.size() - 1 - n : n;
    if (bytes(i) > bytes(most)) most = i;
  }
  return most;
}

bool has_micro_batches(const DeviceShare& share) {
  const auto is_another = [](const PipelineAction& action) { return action.micro_batch > 0; };
  const auto has_several = [](const DeviceShare::Stage& stage) { return stage.live > 1; };
  return share.actions.empty() ? std::ranges::any_of(share.stages, has_several)
                               : std::ranges::any_of(share.actions, is_another);
}

std::size_t chunk_of(const PipelineAction& action) {
  return static_cast<std::size_t>(action.chunk);
}

}  // namespace

StepMemory::StepMemory(const DeviceShare& share, const ActivationSettings& settings) : actions_(passes_of(share)) {
  for (const DeviceShare::Stage& stage : share.stages) {
    const PassMemory& pass = passes_.emplace_back(pass_memory(stage.layers, settings));
    largest_forward_.push_back(largest_moment(pass.forward, false));
    largest_backward_.push_back(largest_moment(pass.backward, true));
  }
}

// Calls visit(action, bytes that the other micro-batches under way keep).
template <typename Visit>
void StepMemory::visit_passes(const Visit& visit) const {
  std::int64_t kept = 0;  // by whole micro-batches
  for (const PipelineAction& action : actions_) {
    const PassMemory& pass = passes_[chunk_of(action)];
    if (action.pass == Way::backward || action.pass == Way::inputs) kept -= pass.kept;
    if (action.pass == Way::weights) kept -= pass.left.front();
    visit(action, kept);
    if (action.pass == Way::forward) kept += pass.kept;
    if (action.pass == Way::inputs) kept += pass.left.front();
  }
}

StepMoment StepMemory::moment(const PipelineAction& action, std::size_t layer, std::int64_t others) const {
  const PassMemory& pass = passes_[chunk_of(action)];
  const PassMemory::Moment& now = action.pass == Way::forward ? pass.forward[layer] : pass.backward[layer];
  // Gradients of weights are made from the last layer to the first, of what was left for them.
  if (action.pass == Way::weights) return {action, layer, others + pass.left.front() - pass.left[layer + 1], 0};
  const std::int64_t left = action.pass == Way::inputs ? pass.left[layer + 1] : 0;
  return {action, layer, others + now.kept + left, now.workspace};
}

std::size_t StepMemory::largest_of(const PipelineAction& action) const {
  return action.pass == Way::forward ? largest_forward_[chunk_of(action)] : largest_backward_[chunk_of(action)];
}

std::vector<StepMoment> StepMemory::moments() const {
  std::vector<StepMoment> moments;
  visit_passes([&](const PipelineAction& action, std::int64_t others) {
    const std::size_t layers = passes_[chunk_of(action)].forward.size();
    for (std::size_t n = 0; n < layers; ++n) {
      moments.push_back(moment(action, action.pass == Way::forward ? n : layers - 1 - n, others));
    }
  });
  return moments;
}

StepMoment StepMemory::peak() const {
  StepMoment most;
  visit_passes([&](const PipelineAction& action, std::int64_t others) {
    const std::size_t layers = passes_[chunk_of(action)].forward.size();
    if (layers == 0) return;
    const auto consider = [&](std::size_t layer) {
      if (const StepMoment now = moment(action, layer, others); now.bytes() > most.bytes()) most = now;
    };
    const bool leaves_weights = action.pass == Way::inputs || action.pass == Way::weights;
    if (!leaves_weights) return consider(largest_of(action));
    for (std::size_t i = layers; i-- > 0;) consider(i);
  });
  return most;
}

std::string moment_text(const StepMoment& moment, const DeviceShare& share) {
  const char* const pass = moment.action.pass == Way::forward   ? "the forward pass"
                           : moment.action.pass == Way::weights ? "the gradients of weights"
                                                                : "the backward pass";
  const std::vector<Layer>& layers = share.stages.at(chunk_of(moment.action)).layers;
  const std::string name = moment.layer < layers.size() ? ", " + layers[moment.layer].name : "";
  if (!has_micro_batches(share)) return pass + name;
  return fmt::format("{} of micro-batch {}{}", pass, moment.action.micro_batch, name);
}

}  // namespace tandem
