// Divides a scenario's batch among the replicas of all workers.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/strategy/strategy.h"

namespace tandem {

// A worker's share of the batch. Synchronous workers compute one batch together. Asynchronous ones take their shares of
// it independently, and each step of one of them is a step of training.
struct BatchShare {
  int workers = 1;                  // those that train
  int worker = 0;                   // the index of this one among them
  int replicas = 1;                 // of each worker
  bool in_step = true;              // whether the workers are synchronous
  double examples_in_sync = 0;      // examples in the mean of a loss: those of all replicas in sync with this one
  std::vector<std::int64_t> local;  // examples of each replica of this worker
  std::vector<std::int64_t> first;  // the first of them in the batch
};

BatchShare batch_share(std::int64_t batch, Strategy& strategy);

}  // namespace tandem
