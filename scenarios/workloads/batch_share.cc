#include "scenarios/workloads/batch_share.h"

#include <numeric>
#include <utility>

#include "strategies/input/distributed_dataset.h"

namespace tandem {

BatchShare batch_share(std::int64_t batch, Strategy& strategy) {
  const InputWorkers input = strategy.extended().implementation().input_workers();
  BatchShare share{.workers = input.num_workers,
                   .worker = input.pipeline_id,
                   .replicas = static_cast<int>(input.devices.size()),
                   .in_step = true,
                   .examples_in_sync = static_cast<double>(batch),
                   .local = {},
                   .first = {}};
  share.in_step = share.workers == 1 || strategy.num_replicas_in_sync() > share.replicas;
  if (!share.in_step) share.examples_in_sync /= share.workers;
  const std::vector<std::int64_t> all = rebatch(batch, share.workers * share.replicas);
  const auto mine = all.begin() + static_cast<std::ptrdiff_t>(share.worker) * share.replicas;
  share.local.assign(mine, mine + share.replicas);
  std::int64_t first = std::accumulate(all.begin(), mine, std::int64_t{0});
  for (const std::int64_t examples : share.local) share.first.push_back(std::exchange(first, first + examples));
  return share;
}

}  // namespace tandem
