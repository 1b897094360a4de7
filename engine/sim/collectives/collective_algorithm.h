// Collective algorithms as schedules: who sends how many bytes to whom, in which steps. Both fidelities execute the
// same schedule: `message` executes its steps one after the other; `fluid` starts one flow for each pair with all bytes
// of the pair, and adds the time that the steps cost beyond that.
//
// To add an algorithm, derive from CollectiveAlgorithm and choose it in collective_model.cc.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/collective.h"

namespace tandem::sim {

struct Transfer {
  int from = 0;  // positions in the algorithm's order of the devices
  int to = 0;
  double bytes = 0;
};

struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;  // all but send_receive
  int devices = 0;                                   // at least 2
  double bytes = 0;                                  // nccl-tests' definition: the larger of a rank's input and output
  int root = 0;                                      // position
};

struct Schedule {
  int steps = 0;
  // The transfers of one step; the next step starts when all have arrived.
  std::function<void(int step, std::vector<Transfer>& transfers)> transfers_of_step;
  // The number of first steps that include the latency of their routes. Later steps follow in a filled pipeline.
  int latency_steps = 0;
  std::vector<Transfer> flows;  // what each pair carries in total
  double fill_bytes = 0;        // what the slowest pair could carry in the time in which the pipeline fills
};

class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;
  virtual std::string_view name() const = 0;
  virtual Schedule plan(const CollectiveShape& shape) const = 0;
};

// The bandwidth-optimal ring (Patarasuk and Yuan, Journal of Parallel and Distributed Computing 69(2), 2009):
// reduce_scatter and all_gather take n - 1 steps, each with bytes / n on every edge, and all_reduce is one after the
// other. Broadcast and reduce pass chunks along the ring, one behind the other.
class RingAlgorithm : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "ring"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

// all_to_all in n - 1 steps: in step s each device sends bytes / n to the one s places further on, so that every device
// sends and receives one message at a time (Thakur, Rabenseifner and Gropp, International Journal of High Performance
// Computing Applications 19(1), 2005).
class PairwiseExchange : public CollectiveAlgorithm {
 public:
  std::string_view name() const override { return "pairwise exchange"; }
  Schedule plan(const CollectiveShape& shape) const override;
};

}  // namespace tandem::sim
