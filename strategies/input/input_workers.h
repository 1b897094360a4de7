// The receiver of distributed input: one worker's devices, and its place among all workers.
#pragma once

#include <functional>
#include <vector>

#include "engine/worker.h"
#include "strategies/input/input_context.h"

namespace tandem {

// Filled in by a strategy for the worker it runs on.
struct InputWorkers {
  Worker& worker;
  std::vector<Device*> devices{};  // one per replica of this worker, in replica order; at least one
  Device* host = nullptr;          // whose memory holds the elements before they are copied; null: the worker's CPU
  int num_workers = 1;             // input pipelines; each worker has as many replicas as this one
  int pipeline_id = 0;             // this worker's
  int num_replicas_in_sync = 0;    // over all workers; 0: not known, and batches are not divided
  InputOptions options{};
  // Whether replicas go on with empty batches while others have data. Otherwise the first replica without data ends the
  // iteration.
  bool enable_partial_batch_handling = true;
  // Returns whether any worker has data for a step, given whether this one has. Called once per step on every worker,
  // in order, where workers cannot tell from the graph what the others have. Empty: each worker decides by itself.
  std::function<bool(bool has_data)> any_worker_has_data{};
};

// Throws ValueError without devices, for a null pointer among them, for a pipeline id that is no worker's, and for
// wrong options.
void check_input_workers(const InputWorkers& workers);

// Makes a function for any_worker_has_data: a maximum over one device of every worker, `devices[i]` on worker i. It
// blocks its caller. Where the engine carries no values, each worker decides by itself.
std::function<bool(bool has_data)> agree_over(Worker& worker, std::vector<DeviceId> devices);

}  // namespace tandem
