// The pipeline's schedule by itself: complete, in order, without deadlock, and with no more live micro-batches than it
// promises.
#include "strategies/parallel/layout/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

constexpr auto kForward = PipelineAction::Pass::forward;
constexpr auto kBackward = PipelineAction::Pass::backward;
constexpr auto kWeights = PipelineAction::Pass::weights;

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
        EXPECT_EQ(peak, live_micro_batches(one_forward_one_backward(stage, stages, micro_batches)));
      }
    }
  }
}

// Plays the schedule with one unit of time for every pass of a stage; returns how long it takes, or -1 when nobody can
// go on.
int played(int devices, int micro_batches, int chunks = 1) {
  std::vector<std::vector<PipelineAction>> schedules;
  for (int device = 0; device < devices; ++device) {
    schedules.push_back(interleaved_one_forward_one_backward(device, devices, chunks, micro_batches));
  }
  const int stages = devices * chunks;
  std::vector<std::size_t> next(schedules.size(), 0);
  std::set<std::pair<int, int>> forward, backward;  // done: stage, micro-batch
  const auto stage_of = [&](int device, const PipelineAction& action) { return action.chunk * devices + device; };
  const auto can_run = [&](int device, const PipelineAction& action) {
    const int stage = stage_of(device, action);
    if (action.pass == kForward) return stage == 0 || forward.contains({stage - 1, action.micro_batch});
    const bool has_gradient = stage + 1 == stages || backward.contains({stage + 1, action.micro_batch});
    return has_gradient && forward.contains({stage, action.micro_batch});
  };
  int time = 0;
  for (; backward.size() < static_cast<std::size_t>(stages) * static_cast<std::size_t>(micro_batches); ++time) {
    std::vector<int> running;
    for (int device = 0; device < devices; ++device) {
      const auto index = static_cast<std::size_t>(device);
      if (next[index] < schedules[index].size() && can_run(device, schedules[index][next[index]])) {
        running.push_back(device);
      }
    }
    if (running.empty()) return -1;
    for (const int device : running) {
      const auto index = static_cast<std::size_t>(device);
      const PipelineAction action = schedules[index][next[index]++];
      (action.pass == kForward ? forward : backward).insert({stage_of(device, action), action.micro_batch});
    }
  }
  return time;
}

TEST(ZeroBubble, DelaysGradientsOfWeightsByThePlaceOfTheStage) {
  EXPECT_EQ(zero_bubble(0, 2, 2),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kForward, 1}, {kBackward, 0}, {kWeights, 0}, {kBackward, 1}, {kWeights, 1}}));
  EXPECT_EQ(zero_bubble(1, 2, 2),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kBackward, 0}, {kForward, 1}, {kBackward, 1}, {kWeights, 0}, {kWeights, 1}}));
}

// Three passes of one unit each: those of 1F1B are one and two units. The paper's table 2: (p - 1)(F + B - W) of
// waiting with the memory of 1F1B.
TEST(ZeroBubble, WaitsForOneUnitAStageAndKeepsNoMoreMicroBatches) {
  for (int stages = 2; stages <= 8; ++stages) {
    for (int micro_batches = 2 * stages; micro_batches <= 20; ++micro_batches) {
      std::vector<std::vector<PipelineAction>> schedules;
      for (int stage = 0; stage < stages; ++stage) {
        schedules.push_back(zero_bubble(stage, stages, micro_batches));
        EXPECT_LE(live_micro_batches(schedules.back()), stages);
        EXPECT_EQ(schedules.back().size(), static_cast<std::size_t>(3 * micro_batches));
      }
      std::map<std::tuple<PipelineAction::Pass, int, int>, int> ends;  // by pass, stage and micro-batch
      std::vector<std::size_t> next(schedules.size(), 0);
      std::vector<int> free(schedules.size(), 0);
      int last = 0;
      for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (int stage = 0; stage < stages; ++stage) {
          const auto index = static_cast<std::size_t>(stage);
          for (; next[index] < schedules[index].size(); ++next[index]) {
            const auto [pass, micro_batch, chunk] = schedules[index][next[index]];
            const int neighbour = pass == kForward ? stage - 1 : stage + 1;
            int ready = 0;
            if (pass != kWeights && neighbour >= 0 && neighbour < stages) {
              const auto found = ends.find({pass, neighbour, micro_batch});
              if (found == ends.end()) break;
              ready = found->second;
            }
            free[index] = std::max(free[index], ready) + 1;
            ends[{pass, stage, micro_batch}] = free[index];
            last = std::max(last, free[index]);
            goes_on = true;
          }
        }
      }
      EXPECT_EQ(last, 3 * micro_batches + stages - 1) << stages << " " << micro_batches;
    }
  }
}

TEST(OneForwardOneBackward, EndsAsSoonAsAnyScheduleCan) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      EXPECT_EQ(played(stages, micro_batches), 2 * (micro_batches + stages - 1)) << stages << " " << micro_batches;
    }
  }
}

// As figure 4 of Narayanan and others, arXiv:2104.04473, draws device 1 of 4 with two chunks and eight micro-batches.
TEST(Interleaved, IsTheScheduleOfThePaper) {
  const std::vector<PipelineAction> actions = interleaved_one_forward_one_backward(0, 4, 2, 8);
  std::string text;
  for (const PipelineAction& action : actions) {
    text += (action.pass == kForward ? " " : " -") + std::to_string(action.micro_batch + 1) + (action.chunk ? "'" : "");
  }
  EXPECT_EQ(text, " 1 2 3 4 1' 2' 3' 4' 5 6 7 -1' 8 -2' 5' -3' 6' -4' 7' -1 8' -2 -3 -4 -5' -6' -7' -8' -5 -6 -7 -8");
}

// A pass of a stage takes one unit; without interleaving it would take as many units as there are chunks.
TEST(Interleaved, DividesTheBubbleByTheStagesOfADevice) {
  for (const int devices : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3, 5}) {
      for (int rounds = 1; rounds <= 4; ++rounds) {
        const int micro_batches = rounds * devices;
        EXPECT_EQ(played(devices, micro_batches, chunks), 2 * (micro_batches * chunks + devices - 1))
            << devices << " " << chunks << " " << micro_batches;
      }
    }
  }
}

TEST(Interleaved, HoldsNoMoreThanItsWarmUpNeeds) {
  for (const int devices : {2, 4}) {
    for (int device = 0; device < devices; ++device) {
      const auto actions = interleaved_one_forward_one_backward(device, devices, 3, 8 * devices);
      int all = 0;
      for (int chunk = 0; chunk < 3; ++chunk) {
        const int live = live_micro_batches(actions, chunk);
        EXPECT_LE(live, 3 * devices);
        all += live;
      }
      EXPECT_GE(all, 2 * (devices - device - 1) + 2 * devices + 1);
    }
  }
  EXPECT_EQ(interleaved_one_forward_one_backward(1, 4, 1, 7), one_forward_one_backward(1, 4, 7));
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
