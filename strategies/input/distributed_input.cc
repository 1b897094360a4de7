#include "strategies/input/distributed_input.h"

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

// A pipeline that fails reports the failure on its own worker; here it counts as ended.
std::int64_t elements_of(const Dataset& dataset) {
  if (const std::int64_t known = dataset.cardinality(); known >= 0) return known;
  std::int64_t count = 0;
  try {
    DatasetIterator elements = dataset.iterator();
    while (elements.next()) ++count;
  } catch (const StrategyError&) {
  } catch (const InvalidArgumentError&) {
  }
  return count;
}

}  // namespace

DistributedInput::DistributedInput(std::vector<Dataset> datasets_, ElementSpec spec_, const InputWorkers& workers_,
                                   int steps_ahead_)
    : datasets(std::move(datasets_)),
      workers(workers_),
      spec(std::move(spec_)),
      steps_ahead(static_cast<std::size_t>(std::max(1, steps_ahead_))),
      is_infinite(datasets.front().cardinality() == kInfiniteCardinality),
      may_be_partial(workers_.enable_partial_batch_handling && !is_infinite &&
                     (workers_.num_workers > 1 || spec.components.empty() || !spec.is_static())) {
  for (std::size_t i = 0; i < datasets.size(); ++i) memories.push_back(std::make_shared<IterationMemory>());
}

bool DistributedInput::fetches_to_device() const {
  return workers.options.experimental_place_dataset_on_device ||
         workers.options.experimental_fetch_to_device.value_or(true);
}

ElementSpec DistributedInput::element_spec() const {
  return may_be_partial ? spec.with_row_count(TensorSpec::kUnknown) : spec;
}

std::int64_t DistributedInput::steps_of_all_workers() const {
  const auto replicas = static_cast<std::int64_t>(workers.devices.size());
  std::int64_t steps = 0;
  for (const Dataset& dataset : datasets_of_workers) {
    steps = std::max(steps, (elements_of(dataset) + replicas - 1) / replicas);
  }
  return steps;
}

}  // namespace tandem
