#include "strategies/parallel/layout/zero_bubble_schedule.h"

#include <algorithm>
#include <array>
#include <deque>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

using Step = PipelineAction::Pass;

// Appends passes of two chunks, each the next one of its kind.
class TwoChunks {
 public:
  void add(Step pass, int chunk, bool with_next = false) {
    Counts& counts = counts_[static_cast<std::size_t>(chunk)];
    switch (pass) {
      case Step::forward:
        actions_.push_back({pass, counts.forward++, chunk, with_next});
        break;
      case Step::inputs:
        owed_.push_back({Step::weights, counts.backward, chunk});
        [[fallthrough]];
      case Step::backward:
        actions_.push_back({pass, counts.backward++, chunk, with_next});
        break;
      case Step::weights:
        add_weights([chunk](const PipelineAction& owed) { return owed.chunk == chunk; });
        break;
    }
  }
  // Adds the oldest gradients of weights that are owed, whichever the chunk.
  void add_oldest_weights() {
    add_weights([](const PipelineAction&) { return true; });
  }
  bool owes_weights() const { return !owed_.empty(); }
  int forward_passes(int chunk) const { return counts_[static_cast<std::size_t>(chunk)].forward; }

  // Returns the passes of micro-batches below `micro_batches`.
  std::vector<PipelineAction> take(int micro_batches) {
    std::erase_if(actions_, [&](const PipelineAction& action) { return action.micro_batch >= micro_batches; });
    return std::move(actions_);
  }

 private:
  struct Counts {
    int forward = 0, backward = 0;
  };
  template <typename Condition>
  void add_weights(Condition is_meant) {
    const auto found = std::ranges::find_if(owed_, is_meant);
    if (found == owed_.end()) return;
    actions_.push_back(*found);
    owed_.erase(found);
  }

  std::vector<PipelineAction> actions_;
  std::deque<PipelineAction> owed_;
  std::array<Counts, 2> counts_{};
};

// The order of DualPipeV, and of one end of DualPipe, whose other end is its image.
TwoChunks folded(int place, int places, int micro_batches) {
  TwoChunks order;
  const int after = places - place - 1;
  for (int i = 0; i < 2 * after; ++i) order.add(Step::forward, 0);
  for (int i = 0; i <= place; ++i) {
    order.add(Step::forward, 0);
    order.add(Step::forward, 1);
  }
  for (int i = 0; i < after; ++i) {
    order.add(Step::inputs, 1);
    order.add_oldest_weights();
    order.add(Step::forward, 1);
  }
  for (int i = 0; i < micro_batches - 2 * places + place + 1; ++i) {
    // Where both stages follow each other, the first of these passes would only wait for each other.
    order.add(Step::forward, 0, i > 0 || after > 0);
    order.add(Step::backward, 1);
    order.add(Step::forward, 1, true);
    order.add(Step::backward, 0);
  }
  for (int i = 0; i < after; ++i) {
    order.add(Step::backward, 1);
    order.add(Step::forward, 1, true);
    order.add(Step::backward, 0);
  }
  // Gradients of weights are put off from the middle of the last passes on.
  const int middle = (place + 1) / 2;
  for (int i = 0; i <= place; ++i) {
    const bool is_past = i > middle || (i == middle && place % 2 == 1);
    order.add(is_past ? Step::inputs : Step::backward, 1);
    order.add(i >= middle ? Step::inputs : Step::backward, 0);
  }
  for (int i = 0; i < after; ++i) {
    order.add_oldest_weights();
    order.add(Step::inputs, 0);
  }
  while (order.owes_weights()) order.add_oldest_weights();
  return order;
}

}  // namespace

std::vector<PipelineAction> zero_bubble(int device, int devices, int chunks, int micro_batches) {
  TANDEM_REQUIRE(device >= 0 && device < devices && micro_batches >= 1, "no such device, or nothing to do");
  TANDEM_REQUIRE(chunks == 1 || micro_batches % devices == 0,
                 "micro-batches that do not go through the pipeline in rounds");
  const RoundsOfPasses rounds{.devices = chunks == 1 ? 1 : devices, .chunks = chunks, .micro_batches = micro_batches};
  const int warm_up = std::min(rounds.passes(), (chunks - 1) * devices + devices - device - 1);
  std::vector<PipelineAction> actions;
  const auto add = [&](Step pass, int number) {
    actions.push_back(rounds.backward(number));
    actions.back().pass = pass;
  };
  for (int i = 0; i < rounds.passes() + warm_up; ++i) {
    if (i < rounds.passes()) actions.push_back(rounds.forward(i));
    if (i < warm_up) continue;
    add(Step::inputs, i - warm_up);
    if (i - warm_up >= device) add(Step::weights, i - warm_up - device);
  }
  for (int i = std::max(0, rounds.passes() - device); i < rounds.passes(); ++i) add(Step::weights, i);
  return actions;
}

std::vector<PipelineAction> zero_bubble_h2(int stage, int stages, int micro_batches) {
  TANDEM_REQUIRE(stage >= 0 && stage < stages && micro_batches >= 1, "no such stage, or nothing to do");
  struct Progress {
    int forward = 0, backward = 0, weights = 0;
  };
  std::vector<Progress> done(static_cast<std::size_t>(stages));
  std::vector<PipelineAction> actions;
  while (done[static_cast<std::size_t>(stage)].weights < micro_batches) {
    const std::vector<Progress> before = done;  // at the beginning of this unit of time
    for (int i = 0; i < stages; ++i) {
      const auto at = static_cast<std::size_t>(i);
      Progress& mine = done[at];
      const int arrived = i == 0 ? micro_batches : before[at - 1].forward;
      const int returned = i + 1 == stages ? before[at].forward : before[at + 1].backward;
      const bool may_keep_more = mine.forward - mine.weights < 2 * stages - 1;
      PipelineAction action;
      if (mine.backward < returned) {
        action = {Step::inputs, mine.backward++};
      } else if (mine.forward < arrived && may_keep_more) {
        action = {Step::forward, mine.forward++};
      } else if (mine.weights < mine.backward) {
        action = {Step::weights, mine.weights++};
      } else {
        continue;
      }
      if (i == stage) actions.push_back(action);
    }
  }
  return actions;
}

// With fewer micro-batches than fill the pipeline, those that would are left out.
std::vector<PipelineAction> zero_bubble_v(int device, int devices, int micro_batches) {
  TANDEM_REQUIRE(device >= 0 && device < devices && micro_batches >= 1, "no such device, or nothing to do");
  const int filling = std::max(2 * devices - 1, micro_batches), after = devices - device;
  TwoChunks order;
  const auto add_whole_backward = [&](int chunk) {
    order.add(Step::inputs, chunk);
    order.add(Step::weights, chunk);
  };
  for (int i = 0; i < 2 * after - 1; ++i) order.add(Step::forward, 0);
  for (int i = 0; i < device; ++i) {
    order.add(Step::forward, 1);
    order.add(Step::forward, 0);
  }
  for (int i = 0; i < after; ++i) {
    order.add(Step::forward, 1);
    add_whole_backward(1);
  }
  while (order.forward_passes(1) < filling) {
    if (order.forward_passes(0) < filling) order.add(Step::forward, 0);
    add_whole_backward(0);
    order.add(Step::forward, 1);
    add_whole_backward(1);
  }
  for (int i = 0; i < device; ++i) {
    order.add(Step::inputs, 0);
    order.add(Step::inputs, 1);
  }
  for (int i = 0; i < after; ++i) {
    order.add(Step::inputs, 0);
    order.add(Step::weights, 0);
  }
  for (int i = 0; i < device; ++i) order.add(Step::weights, 1);
  while (order.owes_weights()) order.add_oldest_weights();
  return order.take(micro_batches);
}

std::vector<PipelineAction> dual_pipe_v(int device, int devices, int micro_batches) {
  TANDEM_REQUIRE(device >= 0 && device < devices && micro_batches >= 2 * devices,
                 "no such device, or too few micro-batches");
  return folded(device, devices, micro_batches).take(micro_batches);
}

std::vector<PipelineAction> dual_pipe(int device, int devices, int micro_batches) {
  TANDEM_REQUIRE(
      device >= 0 && device < devices && devices % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * devices,
      "no such device, or micro-batches that do not go from both ends");
  const bool is_image = device >= devices / 2;
  std::vector<PipelineAction> actions =
      folded(is_image ? devices - 1 - device : device, devices / 2, micro_batches / 2).take(micro_batches / 2);
  if (!is_image) return actions;
  for (PipelineAction& action : actions) action.chunk = 1 - action.chunk;
  return actions;
}

}  // namespace tandem
