// Turns the plan of a call into its steps: the same channels, algorithm and protocol, the same rates and the same fixed
// time as the flows of `fluid`.
//
// What comes from where: the choice of algorithm and protocol, the channels' ways and the NICs from the communicator;
// the rate of a channel from the time in which the plan moves its bytes; what a step costs beside its copy from the
// constants of the mechanism, in such proportion that the whole graph takes the plan's time on free links
// (rehearsal.h). Slices of a chunk are not simulated one by one: their costs are part of a step's. Chunks that follow
// each other in a filled pipeline are joined, as far as filling it still fits into the plan's fixed time.
#pragma once

#include <memory>
#include <string>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/steps/step_graph.h"

namespace tandem::sim::steps {

struct StepPlan {
  std::shared_ptr<const StepGraph> graph{};  // null where its steps cannot be simulated
  std::string problem{};                     // why, in words that end a sentence; empty: it has no steps
};

// `plan` must be one of this communicator for this call and root, with all flows; its times may have been multiplied.
StepPlan plan_steps(const nccl::Communicator& communicator, const nccl::Call& call, int root, const nccl::Plan& plan);

}  // namespace tandem::sim::steps
