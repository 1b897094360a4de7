#include "strategies/parallel/layout/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "strategies/base/errors.h"

namespace tandem {

bool has_passes_of_weights(std::span<const PipelineAction> actions) {
  return std::ranges::count(actions, PipelineAction::Pass::weights, &PipelineAction::pass) > 0;
}

int live_micro_batches(std::span<const PipelineAction> actions, int chunk) {
  using Pass = PipelineAction::Pass;
  int live = 0, most = 0;
  for (const PipelineAction& action : actions) {
    if (action.chunk != chunk) continue;
    if (action.pass == Pass::forward) ++live;
    if (action.pass == Pass::backward || action.pass == Pass::weights) --live;
    most = std::max(most, live);
  }
  return most;
}

int owing_micro_batches(std::span<const PipelineAction> actions, int chunk) {
  using Pass = PipelineAction::Pass;
  int owing = 0, most = 0;
  bool leaves_any = false;
  for (const PipelineAction& action : actions) {
    if (action.chunk != chunk) continue;
    if (action.pass == Pass::backward || action.pass == Pass::inputs) most = std::max(most, ++owing);
    if (action.pass == Pass::backward || action.pass == Pass::weights) --owing;
    leaves_any = leaves_any || action.pass == Pass::inputs;
  }
  return leaves_any ? most : 0;
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

namespace {

void check_rounds(int device, int devices, int micro_batches) {
  TANDEM_REQUIRE(device >= 0 && device < devices && micro_batches >= 1 && micro_batches % devices == 0,
                 "micro-batches that do not go through the pipeline in rounds");
}

// Returns `warm_up` forward passes, then one forward and one backward pass in turn, then the other backward passes.
std::vector<PipelineAction> in_turn(const RoundsOfPasses& rounds, int warm_up, bool alternate) {
  std::vector<PipelineAction> actions;
  for (int i = 0; i < warm_up; ++i) actions.push_back(rounds.forward(i));
  for (int i = warm_up; i < rounds.passes(); ++i) {
    actions.push_back(rounds.forward(i));
    actions.back().with_next = alternate;
    actions.push_back(rounds.backward(i - warm_up));
  }
  for (int i = rounds.passes() - warm_up; i < rounds.passes(); ++i) actions.push_back(rounds.backward(i));
  return actions;
}

int interleaved_warm_up(int device, const RoundsOfPasses& rounds) {
  return std::min(rounds.passes(), 2 * (rounds.devices - device - 1) + (rounds.chunks - 1) * rounds.devices);
}

}  // namespace

PipelineAction RoundsOfPasses::forward(int number) const {
  return {.pass = PipelineAction::Pass::forward,
          .micro_batch = number / (devices * chunks) * devices + number % devices,
          .chunk = number % (devices * chunks) / devices};
}

PipelineAction RoundsOfPasses::backward(int number) const {
  PipelineAction action = forward(number);
  action.pass = PipelineAction::Pass::backward;
  action.chunk = chunks - 1 - action.chunk;
  return action;
}

std::vector<PipelineAction> interleaved_one_forward_one_backward(int device, int devices, int chunks,
                                                                 int micro_batches) {
  if (chunks == 1) return one_forward_one_backward(device, devices, micro_batches);
  check_rounds(device, devices, micro_batches);
  const RoundsOfPasses rounds{.devices = devices, .chunks = chunks, .micro_batches = micro_batches};
  const bool is_one_round = micro_batches == devices;
  return in_turn(rounds, is_one_round ? rounds.passes() : interleaved_warm_up(device, rounds), false);
}

std::vector<PipelineAction> alternating_one_forward_one_backward(int device, int devices, int chunks,
                                                                 int micro_batches) {
  if (chunks > 1) check_rounds(device, devices, micro_batches);
  // With one chunk, rounds are of one micro-batch, so that their number need not be a multiple.
  const RoundsOfPasses rounds{.devices = chunks == 1 ? 1 : devices, .chunks = chunks, .micro_batches = micro_batches};
  const int warm_up = chunks == 1 ? 2 * (devices - device - 1) : interleaved_warm_up(device, rounds);
  return in_turn(rounds, std::min(rounds.passes(), warm_up + 1), true);
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
