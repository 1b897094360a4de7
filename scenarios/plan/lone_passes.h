// What one replica's passes take by themselves: the work of one device on the layers of a model, as simulated without
// other replicas, a pipeline or sharding. From it follow times that no step goes below (step_bound.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/job/job.h"

namespace tandem {

// Seconds during which the first device works on a layer in one pass of a micro-batch, whatever it works on; idle time
// is left out.
struct LonePass {
  double forward_s = 0;
  double backward_s = 0;  // all of it
  // What a schedule that leaves gradients of weights for later leaves of this, and what may be among it.
  double weights_s = 0, either_s = 0;
  double both_s() const { return forward_s + backward_s; }
};

// By layer of the model.
struct LonePasses {
  std::vector<LonePass> first{};  // of a step's first micro-batch
  std::vector<LonePass> more{};   // of each further one
};

struct LoneWork {
  LonePasses all{};
  LonePasses unhidden{};  // without what each device sends to each other one, as to experts: another pass may hide it
};

// Whether a step is passes of micro-batches through stages, as of a mesh and of strategies that divide layers or stages
// among all devices. Else each device has a replica of its own.
bool has_stages(const Job& job);

// Returns the examples of one pass, or of the replica with most of them.
std::int64_t examples_of_pass(const Job& job);

// Returns the passes of a job over micro-batches of as many examples as the job's. With stages, they are those of one
// replica on one stage: tensor x context devices, and as many along data as divide the experts. Other strategies run as
// one replica, whose step is `first`, all of it forward; that of a perceptron is the whole step, with all that its
// device waits for. Kernels wait for as many devices as those of the job. The memory of the devices is no limit, and
// what the host keeps costs nothing. One simulation. Returns nothing for traces, on processors with measured rates, and
// where a replica has no example for each pass, or cannot run by itself.
std::optional<LoneWork> lone_work(const Job& job);

}  // namespace tandem
