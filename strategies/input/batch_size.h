// How tf.distribute divides global batches.
#pragma once

#include "strategies/input/dataset.h"

namespace tandem {

// The size of the dataset's full batches, or kUnknownBatchSize where its graph does not tell: components or branches
// that disagree, no batch(), a function after it. ValueError for elements with scalars.
std::int64_t compute_batch_size(const Dataset& dataset);

// The batches that a worker's replicas take in turn so that every step uses `global_batch` rows over all workers: the
// first ones get one more where it does not divide, and each worker's list starts where the one before it stops.
// ValueError for arguments that are no such division.
std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch, int num_workers, int replicas_per_worker,
                                                 int worker);

}  // namespace tandem
