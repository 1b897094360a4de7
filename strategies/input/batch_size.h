// The rules by which tf.distribute divides global batches.
#pragma once

#include "strategies/input/dataset.h"

namespace tandem {

// The size of the dataset's full batches. kUnknownBatchSize where the graph does not tell: without a batch(), with a
// function after it, and for components or branches that disagree. ValueError for elements with scalars.
std::int64_t compute_batch_size(const Dataset& dataset);

// The sizes of the batches that a worker's replicas take in turn, such that every step uses `global_batch` rows over
// all workers. Where the division leaves a remainder the first batches have one row more; each worker's list starts
// where the previous worker's stops. ValueError for arguments that are no such division.
std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch, int num_workers, int replicas_per_worker,
                                                 int worker);

}  // namespace tandem
