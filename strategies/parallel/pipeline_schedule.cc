#include "strategies/parallel/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "strategies/base/errors.h"

namespace tandem {

int live_micro_batches(int stage, int stages, int micro_batches) {
  return std::min(micro_batches, stages - stage);
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
