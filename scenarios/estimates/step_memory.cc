#include "scenarios/estimates/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

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

// A pass lets the one that it takes turns with go on where it exchanges rows with experts (MeshTraining::run_passes).
std::vector<std::size_t> ends_of_turns(const std::vector<Layer>& layers) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].routing) continue;
    ends.push_back(layers[i].routing->way == Layer::Routing::Way::dispatch ? i + 1 : i);
  }
  ends.push_back(layers.size());
  return ends;
}

// Whether the pass at `i` takes turns with the next one, which `actions` still has.
bool takes_turns(const std::vector<PipelineAction>& actions, std::size_t i) {
  return actions[i].with_next && i + 1 < actions.size() && actions[i].pass == Way::forward &&
         actions[i + 1].pass != Way::forward;
}

}  // namespace

StepMemory::StepMemory(const DeviceShare& share, const ActivationSettings& settings) : actions_(passes_of(share)) {
  for (const DeviceShare::Stage& stage : share.stages) {
    const PassMemory& pass = passes_.emplace_back(pass_memory(stage.layers, settings));
    largest_forward_.push_back(largest_moment(pass.forward, false));
    largest_backward_.push_back(largest_moment(pass.backward, true));
    turns_.push_back(ends_of_turns(stage.layers));
  }
}

// Returns the bytes that were kept for a pass until its begin.
std::int64_t StepMemory::taken_up(const PipelineAction& action) const {
  const PassMemory& pass = passes_[chunk_of(action)];
  return action.pass == Way::forward ? 0 : action.pass == Way::weights ? pass.left.front() : pass.kept;
}

// Returns the bytes that a pass keeps for a later one.
std::int64_t StepMemory::left_behind(const PipelineAction& action) const {
  const PassMemory& pass = passes_[chunk_of(action)];
  return action.pass == Way::forward ? pass.kept : action.pass == Way::inputs ? pass.left.front() : 0;
}

// Calls alone(action, others) for each pass, pair(forward, backward, others) for two that take turns. `others` are the
// bytes that other micro-batches under way keep.
template <typename Alone, typename Pair>
void StepMemory::visit_passes(const Alone& alone, const Pair& pair) const {
  std::int64_t kept = 0;  // by whole micro-batches
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const PipelineAction& action = actions_[i];
    if (!takes_turns(actions_, i)) {
      kept -= taken_up(action);
      alone(action, kept);
      kept += left_behind(action);
      continue;
    }
    const PipelineAction& back = actions_[++i];
    kept -= taken_up(back);
    pair(action, back, kept);
    kept += left_behind(action) + left_behind(back);
  }
}

// Returns the bytes that a pass keeps of its first layers.
std::int64_t StepMemory::kept_by_first(std::size_t layers, const PipelineAction& action) const {
  return layers == 0 ? 0 : passes_[chunk_of(action)].forward[layers - 1].kept;
}

// Calls visit(moment) in the order in which the turns are issued, with nothing of other micro-batches.
template <typename Visit>
void StepMemory::visit_turns(const PipelineAction& there, const PipelineAction& back, const Visit& visit) const {
  const std::vector<std::size_t>& ends = turns_[chunk_of(there)];
  const std::vector<std::size_t>& begins = turns_[chunk_of(back)];
  std::size_t done = 0, left = begins.back();
  const auto owed = [&] { return back.pass == Way::inputs ? passes_[chunk_of(back)].left[left] : 0; };
  for (std::size_t turn = 0; turn < std::max(ends.size(), begins.size()); ++turn) {
    for (const std::size_t end = ends[std::min(turn, ends.size() - 1)]; done < end; ++done) {
      visit(moment(there, done, kept_by_first(left, back) + owed()));
    }
    const std::size_t begin = turn + 2 > begins.size() ? 0 : begins[begins.size() - 2 - turn];
    for (; left > begin; --left) visit(moment(back, left - 1, kept_by_first(done, there)));
  }
}

StepMoment StepMemory::largest_of_turns(const PipelineAction& there, const PipelineAction& back) const {
  StepMoment most;
  visit_turns(there, back, [&](const StepMoment& now) {
    if (now.bytes() > most.bytes()) most = now;
  });
  return most;
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
  const auto alone = [&](const PipelineAction& action, std::int64_t others) {
    const std::size_t layers = passes_[chunk_of(action)].forward.size();
    for (std::size_t n = 0; n < layers; ++n) {
      moments.push_back(moment(action, action.pass == Way::forward ? n : layers - 1 - n, others));
    }
  };
  const auto pair = [&](const PipelineAction& there, const PipelineAction& back, std::int64_t others) {
    visit_turns(there, back, [&](StepMoment now) {
      now.activations += others;
      moments.push_back(now);
    });
  };
  visit_passes(alone, pair);
  return moments;
}

StepMoment StepMemory::peak() const {
  StepMoment most;
  const auto consider = [&](const StepMoment& now) {
    if (now.bytes() > most.bytes()) most = now;
  };
  const auto alone = [&](const PipelineAction& action, std::int64_t others) {
    const std::size_t layers = passes_[chunk_of(action)].forward.size();
    if (layers == 0) return;
    const bool leaves_weights = action.pass == Way::inputs || action.pass == Way::weights;
    if (!leaves_weights) return consider(moment(action, largest_of(action), others));
    for (std::size_t i = layers; i-- > 0;) consider(moment(action, i, others));
  };
  std::map<std::tuple<int, int, Way>, StepMoment> largest;  // of two passes, by their chunks and what the second one is
  const auto pair = [&](const PipelineAction& there, const PipelineAction& back, std::int64_t others) {
    const auto [found, is_new] = largest.try_emplace({there.chunk, back.chunk, back.pass});
    if (is_new) found->second = largest_of_turns(there, back);
    StepMoment now = found->second;
    now.action = now.action.pass == Way::forward ? there : back;
    now.activations += others;
    consider(now);
  };
  visit_passes(alone, pair);
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
