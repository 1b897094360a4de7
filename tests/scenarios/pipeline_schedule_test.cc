// The pipeline's schedule by itself: complete, in order, without deadlock, and with no more live micro-batches than it
// promises.
#include "strategies/parallel/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

constexpr auto kForward = PipelineAction::Pass::forward;
constexpr auto kBackward = PipelineAction::Pass::backward;

// As figure 4 of PipeDream-2BW and figure 3 of Narayanan and others, arXiv:2104.04473, draw it.
TEST(OneForwardOneBackward, IsTheScheduleOfThePaper) {
  EXPECT_EQ(one_forward_one_backward(1, 2, 3),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kBackward, 0}, {kForward, 1}, {kBackward, 1}, {kForward, 2}, {kBackward, 2}}));
  EXPECT_EQ(one_forward_one_backward(0, 2, 3),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kForward, 1}, {kBackward, 0}, {kForward, 2}, {kBackward, 1}, {kBackward, 2}}));
  EXPECT_EQ(one_forward_one_backward(0, 4, 1), (std::vector<PipelineAction>{{kForward, 0}, {kBackward, 0}}));
}

TEST(OneForwardOneBackward, HoldsAtMostAsManyMicroBatchesAsStagesRemain) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int stage = 0; stage < stages; ++stage) {
      for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
        int live = 0, peak = 0;
        for (const PipelineAction action : one_forward_one_backward(stage, stages, micro_batches)) {
          live += action.pass == kForward ? 1 : -1;
          peak = std::max(peak, live);
        }
        EXPECT_EQ(live, 0);
        EXPECT_LE(peak, stages - stage);
        EXPECT_EQ(peak, live_micro_batches(stage, stages, micro_batches));
      }
    }
  }
}

// Plays the schedule with one unit of time for every pass; returns how long it takes, or -1 when nobody can go on.
int played(int stages, int micro_batches) {
  std::vector<std::vector<PipelineAction>> schedules;
  for (int stage = 0; stage < stages; ++stage) {
    schedules.push_back(one_forward_one_backward(stage, stages, micro_batches));
  }
  std::vector<std::size_t> next(schedules.size(), 0);
  std::set<std::pair<int, int>> forward, backward;  // done: stage, micro-batch
  const auto can_run = [&](int stage, const PipelineAction& action) {
    if (action.pass == kForward) return stage == 0 || forward.contains({stage - 1, action.micro_batch});
    const bool has_gradient = stage + 1 == stages || backward.contains({stage + 1, action.micro_batch});
    return has_gradient && forward.contains({stage, action.micro_batch});
  };
  int time = 0;
  for (; backward.size() < static_cast<std::size_t>(stages) * static_cast<std::size_t>(micro_batches); ++time) {
    std::vector<int> running;
    for (int stage = 0; stage < stages; ++stage) {
      const auto index = static_cast<std::size_t>(stage);
      if (next[index] < schedules[index].size() && can_run(stage, schedules[index][next[index]])) {
        running.push_back(stage);
      }
    }
    if (running.empty()) return -1;
    for (const int stage : running) {
      const auto index = static_cast<std::size_t>(stage);
      const PipelineAction action = schedules[index][next[index]++];
      (action.pass == kForward ? forward : backward).insert({stage, action.micro_batch});
    }
  }
  return time;
}

TEST(OneForwardOneBackward, EndsAsSoonAsAnyScheduleCan) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      EXPECT_EQ(played(stages, micro_batches), 2 * (micro_batches + stages - 1)) << stages << " " << micro_batches;
    }
  }
}

TEST(DivideIntoStages, MakesTheMostExpensiveStageAsCheapAsPossible) {
  const std::vector<double> costs = {1, 8, 8, 8, 8, 1};
  EXPECT_EQ(divide_into_stages(costs, 1), (std::vector<int>{0, 6}));
  EXPECT_EQ(divide_into_stages(costs, 2), (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(divide_into_stages(costs, 6), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
  const std::vector<int> four = divide_into_stages(costs, 4);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    double cost = 0;
    for (int layer = four[stage]; layer < four[stage + 1]; ++layer) cost += costs[static_cast<std::size_t>(layer)];
    EXPECT_GT(cost, 0);
    EXPECT_LE(cost, 9);
  }
  EXPECT_THROW(divide_into_stages(costs, 7), ValueError);
  EXPECT_THROW(divide_into_stages(costs, 0), ValueError);
}

}  // namespace
}  // namespace tandem
