// Who gets distributed input: one worker's devices, and where that worker stands among all.
#pragma once

#include <functional>
#include <vector>

#include "engine/worker.h"
#include "strategies/input/input_context.h"

namespace tandem {

// A strategy fills one in for the worker it runs on.
struct InputWorkers {
  Worker& worker;
  std::vector<Device*> devices{};  // of this worker's replicas, in their order; at least one
  Device* host = nullptr;          // whose memory holds the elements before they are copied; null: the worker's CPU
  int num_workers = 1;             // input pipelines; each worker has as many replicas as this one
  int pipeline_id = 0;             // this worker's
  int num_replicas_in_sync = 0;    // over all workers; 0: not known, batches stay as they are
  InputOptions options{};
  // Whether replicas go on with empty batches while others have data. Without, the first one out of data ends the step.
  bool enable_partial_batch_handling = true;
  // Tells whether any worker has data for a step, given whether this one has. Called once a step on every worker, in
  // order, where several workers cannot know it of each other; empty: each worker goes by itself.
  std::function<bool(bool has_data)> any_worker_has_data{};
};

// ValueError: no devices, a pipeline id that is no worker's, wrong options.
void check_input_workers(const InputWorkers& workers);

// For any_worker_has_data: a maximum over one device of every worker, `devices[i]` on worker i. Blocks the caller.
// Where no values are carried nothing can be asked and each worker goes by itself.
std::function<bool(bool has_data)> agree_over(Worker& worker, std::vector<DeviceId> devices);

}  // namespace tandem
