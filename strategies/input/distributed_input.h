// The data shared by a distributed dataset and its iterators. Internal to strategies/input.
#pragma once

#include <vector>

#include "strategies/input/dataset.h"
#include "strategies/input/input_workers.h"

namespace tandem {

struct DistributedInput {
  DistributedInput(std::vector<Dataset> datasets, ElementSpec spec, const InputWorkers& workers, int steps_ahead);

  std::vector<Dataset> datasets;  // one for all of this worker's replicas, or one for each
  std::vector<MemoryPtr> memories;
  InputWorkers workers;
  ElementSpec spec;                            // before sharding; the same for every worker, also for one without data
  std::vector<Dataset> datasets_of_workers{};  // each worker's, where all of them are known here
  std::size_t steps_ahead;
  bool is_infinite;
  bool may_be_partial;  // next() gives steps in which some replicas have no data

  bool fetches_to_device() const;
  // The form of one replica's element, as next() gives it.
  ElementSpec element_spec() const;
  // The number of steps of the worker with the most data. Iterates over the data where the graphs do not tell.
  std::int64_t steps_of_all_workers() const;
};

}  // namespace tandem
