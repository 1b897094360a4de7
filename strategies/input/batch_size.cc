#include "strategies/input/batch_size.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/batch_rows.h"

namespace tandem {

std::int64_t compute_batch_size(const Dataset& dataset) {
  const ElementSpec spec = dataset.element_spec();
  check_batched(spec);
  bool all_known = !spec.components.empty(), all_equal = true;
  for (const TensorSpec& component : spec.components) {
    all_known = all_known && component.dimensions.front() != TensorSpec::kUnknown;
    all_equal = all_equal && component.dimensions.front() == spec.components.front().dimensions.front();
  }
  if (all_known) return all_equal ? spec.components.front().dimensions.front() : kUnknownBatchSize;
  return dataset.node()->batch_size();
}

std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch, int num_workers, int replicas_per_worker,
                                                 int worker) {
  if (global_batch < 0 || num_workers < 1 || replicas_per_worker < 1 || worker < 0 || worker >= num_workers) {
    throw ValueError(fmt::format("a global batch of {} for {} workers with {} replicas, and of those worker {}",
                                 global_batch, num_workers, replicas_per_worker, worker));
  }
  const std::int64_t replicas = std::int64_t{num_workers} * replicas_per_worker;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(replicas), global_batch / replicas);
  for (std::int64_t i = 0; i < global_batch % replicas; ++i) ++sizes[static_cast<std::size_t>(i)];
  std::rotate(sizes.begin(), sizes.begin() + std::ptrdiff_t{worker} * replicas_per_worker, sizes.end());
  return sizes;
}

}  // namespace tandem
