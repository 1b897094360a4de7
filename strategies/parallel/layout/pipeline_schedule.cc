#include "strategies/parallel/layout/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "strategies/base/errors.h"

namespace tandem {

int live_micro_batches(std::span<const PipelineAction> actions, int chunk) {
  using Pass = PipelineAction::Pass;
  const bool has_weights = std::ranges::count(actions, Pass::weights, &PipelineAction::pass) > 0;
  int live = 0, most = 0;
  for (const PipelineAction& action : actions) {
    if (action.chunk != chunk) continue;
    if (action.pass == Pass::forward) ++live;
    if (action.pass == (has_weights ? Pass::weights : Pass::backward)) --live;
    most = std::max(most, live);
  }
  return most;
}

std::vector<PipelineAction> one_forward_one_backward(int stage, int stages, int micro_batches) {
  TANDEM_REQUIRE(stage >= 0 && stage < stages && micro_batches >= 1, "no such stage, or nothing to do");
  const int warm_up = std::min(stages - stage - 1, micro_batches);
  std::vector<PipelineAction> actions;
  for (int i = 0; i < warm_up; ++i) actions.push_back({PipelineAction::Pass::forward, i});
  for (int i = warm_up; i < micro_batches; ++i) {
    actions.push_back({PipelineAction::Pass::forward, i});
    actions.push_back({PipelineAction::Pass::backward, i - warm_up});
  }
  for (int i = micro_batches - warm_up; i < micro_batches; ++i) {
    actions.push_back({PipelineAction::Pass::backward, i});
  }
  return actions;
}

std::vector<PipelineAction> zero_bubble(int stage, int stages, int micro_batches) {
  std::vector<PipelineAction> actions;
  for (const PipelineAction& action : one_forward_one_backward(stage, stages, micro_batches)) {
    actions.push_back(action);
    const int ready = action.micro_batch - stage;
    const bool is_backward = action.pass == PipelineAction::Pass::backward;
    if (is_backward && ready >= 0) actions.push_back({PipelineAction::Pass::weights, ready});
  }
  for (int i = std::max(0, micro_batches - stage); i < micro_batches; ++i) {
    actions.push_back({PipelineAction::Pass::weights, i});
  }
  return actions;
}

// Numbers both passes of all stages of the device in their order: a round of micro-batches goes through chunk 0, then
// through chunk 1, and so on; the backward passes take the chunks in the opposite order.
std::vector<PipelineAction> interleaved_one_forward_one_backward(int device, int devices, int chunks,
                                                                 int micro_batches) {
  if (chunks == 1) return one_forward_one_backward(device, devices, micro_batches);
  TANDEM_REQUIRE(device >= 0 && device < devices && micro_batches >= 1 && micro_batches % devices == 0,
                 "micro-batches that do not go through the pipeline in rounds");
  const int passes = micro_batches * chunks;
  const auto action = [&](PipelineAction::Pass pass, int number) {
    const int chunk = number % (devices * chunks) / devices;
    const bool is_forward = pass == PipelineAction::Pass::forward;
    return PipelineAction{.pass = pass,
                          .micro_batch = number / (devices * chunks) * devices + number % devices,
                          .chunk = is_forward ? chunk : chunks - 1 - chunk};
  };
  const int warm_up =
      micro_batches == devices ? passes : std::min(passes, 2 * (devices - device - 1) + (chunks - 1) * devices);
  std::vector<PipelineAction> actions;
  for (int i = 0; i < warm_up; ++i) actions.push_back(action(PipelineAction::Pass::forward, i));
  for (int i = warm_up; i < passes; ++i) {
    actions.push_back(action(PipelineAction::Pass::forward, i));
    actions.push_back(action(PipelineAction::Pass::backward, i - warm_up));
  }
  for (int i = passes - warm_up; i < passes; ++i) actions.push_back(action(PipelineAction::Pass::backward, i));
  return actions;
}

// best[s][l] is the least possible cost of the most expensive stage when the first l layers form s stages.
std::vector<int> divide_into_stages(std::span<const double> layer_costs, int stages) {
  const int layers = static_cast<int>(layer_costs.size());
  if (stages < 1 || stages > layers)
    throw ValueError(fmt::format("{} layers cannot form {} pipeline stages", layers, stages));
  std::vector<double> sums(layer_costs.size() + 1, 0);
  std::partial_sum(layer_costs.begin(), layer_costs.end(), sums.begin() + 1);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const std::vector<double> unreachable(sums.size(), std::numeric_limits<double>::infinity());
  std::vector<std::vector<double>> best(at(stages + 1), unreachable);
  std::vector<std::vector<int>> cut(at(stages + 1), std::vector<int>(sums.size(), 0));
  best[0][0] = 0;
  for (int stage = 1; stage <= stages; ++stage) {
    for (int end = stage; end <= layers; ++end) {
      for (int begin = stage - 1; begin < end; ++begin) {
        const double cost = std::max(best[at(stage - 1)][at(begin)], sums[at(end)] - sums[at(begin)]);
        if (cost >= best[at(stage)][at(end)]) continue;
        best[at(stage)][at(end)] = cost;
        cut[at(stage)][at(end)] = begin;
      }
    }
  }
  std::vector<int> first(at(stages + 1), layers);
  for (int stage = stages; stage > 0; --stage) first[at(stage - 1)] = cut[at(stage)][at(first[at(stage)])];
  return first;
}

}  // namespace tandem
