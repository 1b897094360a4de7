// The pipeline's schedule by itself: complete, in order, without deadlock, and with no more live micro-batches than it
// promises.
#include "strategies/parallel/layout/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "strategies/base/errors.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/parallel/layout/zero_bubble_schedule.h"

namespace tandem {
namespace {

constexpr auto kForward = PipelineAction::Pass::forward;
constexpr auto kBackward = PipelineAction::Pass::backward;
constexpr auto kInputs = PipelineAction::Pass::inputs;
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

// What a play of the passes of all devices found. Times are in units of one pass.
struct Played {
  int time = 0;     // until the last pass ends; -1: somebody waits for ever
  int waiting = 0;  // at most, of a device between its first and its last pass
};

// Where the stages of a device are.
ParallelOptions placed(int devices, int chunks = 1, PipelineOrder order = PipelineOrder::one_forward_one_backward) {
  return {.pipeline = devices, .virtual_stages = chunks, .order = order};
}

// Each pass takes one unit; `whole`: the units of a backward pass that computes the gradients of weights, too.
template <typename Order>
Played play(const ParallelOptions& options, Order order, int whole = 1) {
  std::vector<std::vector<PipelineAction>> schedules;
  for (int device = 0; device < options.pipeline; ++device) schedules.push_back(order(device));
  std::map<std::tuple<PipelineAction::Pass, int, int, int>, int> ends;  // by pass, way, stage and micro-batch
  std::vector<std::size_t> next(schedules.size(), 0);
  std::vector<int> free(schedules.size(), 0), begun(schedules.size(), -1), busy(schedules.size(), 0);
  const auto run = [&](int device) {
    const auto index = static_cast<std::size_t>(device);
    const PipelineAction action = schedules[index][next[index]];
    const int stage = options.stage_of(device, action.chunk), way = options.ways() > 1 ? action.chunk : 0;
    int ready = 0;
    const auto follows = [&](PipelineAction::Pass pass, int of_stage) {
      const auto found = ends.find({pass, way, of_stage, action.micro_batch});
      if (found != ends.end()) ready = std::max(ready, found->second);
      return found != ends.end();
    };
    const bool is_last = stage + 1 == options.stages();
    const bool can_run = action.pass == kForward ? stage == 0 || follows(kForward, stage - 1)
                         : action.pass == kWeights
                             ? follows(kInputs, stage)
                             : follows(kForward, stage) && (is_last || follows(kInputs, stage + 1));
    if (!can_run) return false;
    ++next[index];
    const int units = action.pass == kBackward ? whole : 1, begin = std::max(free[index], ready);
    if (begun[index] < 0) begun[index] = begin;
    busy[index] += units;
    free[index] = begin + units;
    ends[{action.pass == kBackward ? kInputs : action.pass, way, stage, action.micro_batch}] = free[index];
    return true;
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int device = 0; device < options.pipeline; ++device) {
      const auto index = static_cast<std::size_t>(device);
      while (next[index] < schedules[index].size() && run(device)) goes_on = true;
    }
  }
  Played played;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (next[i] < schedules[i].size()) return {.time = -1};
    played.time = std::max(played.time, free[i]);
    played.waiting = std::max(played.waiting, free[i] - begun[i] - busy[i]);
  }
  return played;
}

int played(int devices, int micro_batches, int chunks = 1) {
  return play(placed(devices, chunks),
              [&](int device) { return interleaved_one_forward_one_backward(device, devices, chunks, micro_batches); })
      .time;
}

// Each micro-batch of each chunk goes forward, backward and, where it is left out, through the gradients of weights
// once, in the order of the numbers.
void expect_complete(std::span<const PipelineAction> actions, int chunks, int micro_batches) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    int forward = 0, backward = 0, weights = 0;
    for (const PipelineAction& action : actions) {
      if (action.chunk != chunk) continue;
      if (action.pass == kForward) {
        EXPECT_EQ(action.micro_batch, forward++);
      }
      if (action.pass == kBackward || action.pass == kInputs) {
        EXPECT_EQ(action.micro_batch, backward++);
      }
      if (action.pass == kBackward || action.pass == kWeights) {
        EXPECT_EQ(action.micro_batch, weights++);
      }
    }
    EXPECT_EQ(forward, micro_batches);
    EXPECT_EQ(backward, micro_batches);
    EXPECT_EQ(weights, micro_batches);
  }
}

int live_in_all(std::span<const PipelineAction> actions) {
  return live_micro_batches(actions, 0) + live_micro_batches(actions, 1);
}

TEST(ZeroBubble, DelaysGradientsOfWeightsByThePlaceOfTheStage) {
  EXPECT_EQ(zero_bubble(0, 2, 1, 2),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kForward, 1}, {kInputs, 0}, {kWeights, 0}, {kInputs, 1}, {kWeights, 1}}));
  EXPECT_EQ(zero_bubble(1, 2, 1, 2),
            (std::vector<PipelineAction>{
                {kForward, 0}, {kInputs, 0}, {kForward, 1}, {kInputs, 1}, {kWeights, 0}, {kWeights, 1}}));
}

// Gradients of weights are owed by the passes that have left them and by the one under way.
TEST(ZeroBubble, OwesGradientsOfWeights) {
  EXPECT_EQ(owing_micro_batches(one_forward_one_backward(0, 4, 8)), 0) << "no pass leaves any";
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(owing_micro_batches(zero_bubble(stage, 4, 1, 8)), stage + 1);
  const std::vector<PipelineAction> actions{{kForward, 0}, {kForward, 0, 1}, {kBackward, 0, 1}, {kInputs, 0},
                                            {kForward, 1}, {kBackward, 1},   {kWeights, 0}};
  EXPECT_EQ(owing_micro_batches(actions, 0), 2);
  EXPECT_EQ(owing_micro_batches(actions, 1), 0);
}

// Three passes of one unit each: those of 1F1B are one and two units. The paper's table 2: (p - 1)(F + B - W) of
// waiting with the memory of 1F1B for ZB-H1, none with twice as much for ZB-H2.
TEST(ZeroBubble, WaitsForOneUnitAStageAndKeepsNoMoreMicroBatches) {
  for (int stages = 2; stages <= 8; ++stages) {
    for (int micro_batches = 2 * stages; micro_batches <= 20; ++micro_batches) {
      const auto h1 = [&](int stage) { return zero_bubble(stage, stages, 1, micro_batches); };
      const auto h2 = [&](int stage) { return zero_bubble_h2(stage, stages, micro_batches); };
      for (int stage = 0; stage < stages; ++stage) {
        expect_complete(h1(stage), 1, micro_batches);
        expect_complete(h2(stage), 1, micro_batches);
        EXPECT_LE(live_micro_batches(h1(stage)), stages);
        EXPECT_LE(live_micro_batches(h2(stage)), 2 * stages - 1);
      }
      EXPECT_EQ(play(placed(stages), h1).time, 3 * micro_batches + stages - 1) << stages << " " << micro_batches;
      EXPECT_EQ(play(placed(stages), h1).waiting, stages - 1);
      EXPECT_EQ(play(placed(stages), h2).waiting, 0) << stages << " " << micro_batches;
    }
  }
}

// With two stages a device the bubble is a third of that of interleaved 1F1B.
TEST(ZeroBubble, GoesWithSeveralStagesOfADevice) {
  for (const int devices : {2, 3, 4, 8}) {
    for (const int chunks : {2, 3}) {
      for (int rounds = 2; rounds <= 4; ++rounds) {
        const int micro_batches = rounds * devices;
        const auto order = [&](int device) { return zero_bubble(device, devices, chunks, micro_batches); };
        for (int device = 0; device < devices; ++device) expect_complete(order(device), chunks, micro_batches);
        EXPECT_EQ(play(placed(devices, chunks), order).time, 3 * micro_batches * chunks + devices - 1);
      }
    }
  }
}

// The paper's section 6: no waiting, with the memory of 1F1B, which is `devices` micro-batches of two stages, and at
// most one of one stage more.
TEST(ZeroBubble, WaitsForNothingWhereItsStagesFormAV) {
  for (int devices = 2; devices <= 8; ++devices) {
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      const auto order = [&](int device) { return zero_bubble_v(device, devices, micro_batches); };
      const Played result = play(placed(devices, 1, PipelineOrder::zero_bubble_v), order);
      EXPECT_GT(result.time, 0) << devices << " " << micro_batches;
      if (micro_batches >= 2 * devices - 1) {
        EXPECT_EQ(result.waiting, 0) << devices << " " << micro_batches;
      }
      for (int device = 0; device < devices; ++device) {
        expect_complete(order(device), 2, micro_batches);
        EXPECT_LE(live_in_all(order(device)), 2 * devices + 1);
      }
    }
  }
}

// The table in arXiv:2412.19437: DualPipe waits for (p / 2 - 1)(F&B + B - 3W), keeps two copies of the parameters and
// the activations of p + 1 micro-batches. Here F = W = 1, and passes that take turns take as long as one after the
// other.
TEST(DualPipe, KeepsOneMoreMicroBatchThan1F1B) {
  for (const int devices : {2, 4, 6, 8}) {
    for (int micro_batches = 2 * devices; micro_batches <= 2 * devices + 12; micro_batches += 2) {
      const auto order = [&](int device) { return dual_pipe(device, devices, micro_batches); };
      const Played result = play(placed(devices, 1, PipelineOrder::dual_pipe), order, 2);
      EXPECT_GT(result.time, 0) << devices << " " << micro_batches;
      EXPECT_LE(result.waiting, 2 * (devices / 2 - 1)) << devices << " " << micro_batches;
      for (int device = 0; device < devices; ++device) {
        expect_complete(order(device), 2, micro_batches / 2);
        EXPECT_LE(live_in_all(order(device)), devices + 1);
        EXPECT_EQ(order(device).size(), order(devices - 1 - device).size());
      }
    }
  }
}

TEST(DualPipe, GoesWithOneCopyOfTheParametersInAV) {
  for (int devices = 1; devices <= 8; ++devices) {
    for (int micro_batches = 2 * devices; micro_batches <= 2 * devices + 12; ++micro_batches) {
      const auto order = [&](int device) { return dual_pipe_v(device, devices, micro_batches); };
      const Played result = play(placed(devices, 1, PipelineOrder::dual_pipe_v), order, 2);
      EXPECT_GT(result.time, 0) << devices << " " << micro_batches;
      EXPECT_LE(result.waiting, 2 * (devices - 1)) << devices << " " << micro_batches;
      for (int device = 0; device < devices; ++device) {
        expect_complete(order(device), 2, micro_batches);
        EXPECT_LE(live_in_all(order(device)), 2 * devices + 1);
      }
    }
  }
}

// No pass takes turns with one of its own micro-batch in the same stage, and nobody waits for ever.
TEST(Alternating, PutsOneMoreForwardPassFirst) {
  for (const int devices : {1, 2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3}) {
      for (int rounds = 1; rounds <= 4; ++rounds) {
        const int micro_batches = rounds * devices;
        const auto order = [&](int device) {
          return alternating_one_forward_one_backward(device, devices, chunks, micro_batches);
        };
        EXPECT_GT(play(placed(devices, chunks), order, 2).time, 0) << devices << " " << chunks << " " << rounds;
        for (int device = 0; device < devices; ++device) {
          const std::vector<PipelineAction> actions = order(device);
          expect_complete(actions, chunks, micro_batches);
          int pairs = 0;
          for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
            if (!actions[i].with_next) continue;
            ++pairs;
            EXPECT_EQ(actions[i].pass, kForward);
            EXPECT_EQ(actions[i + 1].pass, kBackward);
            EXPECT_NE(std::pair(actions[i].micro_batch, actions[i].chunk),
                      std::pair(actions[i + 1].micro_batch, actions[i + 1].chunk));
          }
          if (device + 1 == devices && chunks == 1) {
            EXPECT_EQ(pairs, micro_batches - 1);
          }
        }
      }
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
