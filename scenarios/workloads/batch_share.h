// How the replicas of all workers divide a scenario's batch.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/base/strategy.h"

namespace tandem {

// Workers in step work on one batch together. Workers that are not take their shares of it each at a pace of its own,
// and a step of one is a step of training.
struct BatchShare {
  int workers = 1;                  // that train
  int worker = 0;                   // this one among them
  int replicas = 1;                 // of each
  bool in_step = true;              // the workers
  double examples_in_sync = 0;      // of the replicas that are in sync with this worker's: what a loss is the mean over
  std::vector<std::int64_t> local;  // examples of each of this worker's replicas
};

BatchShare batch_share(std::int64_t batch, Strategy& strategy);

}  // namespace tandem
