#include "strategies/input/distributed_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/autoshard.h"
#include "strategies/input/batch_size.h"
#include "strategies/input/distributed_input.h"

namespace tandem {
namespace {

int steps_ahead(const InputOptions& options) {
  return options.experimental_per_replica_buffer_size + 1;  // the step in use and those being copied
}

int replicas_per_worker(const InputWorkers& workers) {
  if (workers.num_replicas_in_sync % workers.num_workers != 0) {
    throw ValueError(
        fmt::format("every worker must have the same number of replicas, but {} replicas in sync are no "
                    "multiple of {} workers",
                    workers.num_replicas_in_sync, workers.num_workers));
  }
  return workers.num_replicas_in_sync / workers.num_workers;
}

// Returns all data in batches of one replica's size, in the order in which `worker` uses them.
Dataset rebatched(const Dataset& dataset, std::int64_t global_batch, const InputWorkers& workers, int worker) {
  if (workers.num_replicas_in_sync <= 1) return dataset.prefetch(1);
  const int replicas = replicas_per_worker(workers);
  const Dataset batches =
      global_batch == kUnknownBatchSize
          ? dataset.legacy_rebatch(workers.num_replicas_in_sync)
          : dataset.rebatch(batch_sizes_for_worker(global_batch, workers.num_workers, replicas, worker));
  return batches.prefetch(replicas);
}

bool are_counted(const std::vector<Dataset>& datasets) {
  return std::all_of(datasets.begin(), datasets.end(),
                     [](const Dataset& dataset) { return dataset.cardinality() >= 0; });
}

DistributedDataset sharded_dataset(const Dataset& dataset, const InputWorkers& workers) {
  const int replicas = std::max(1, workers.num_replicas_in_sync);
  if (replicas > 1) replicas_per_worker(workers);  // refuses what cannot be divided
  const std::int64_t global_batch = replicas > 1 ? compute_batch_size(dataset) : kUnknownBatchSize;
  const auto dataset_of = [&](int worker) {
    return auto_shard(rebatched(dataset, global_batch, workers, worker), workers.num_workers, worker, replicas).dataset;
  };
  const ElementSpec spec = rebatched(dataset, global_batch, workers, workers.pipeline_id).element_spec();
  auto input = std::make_shared<DistributedInput>(std::vector<Dataset>{dataset_of(workers.pipeline_id)}, spec, workers,
                                                  steps_ahead(workers.options));
  if (workers.num_workers == 1 || input->is_infinite) return DistributedDataset(std::move(input));
  // Every worker has this graph, and so knows which elements the others get. If the graph does not say how many these
  // are, counting them costs a pass over the data, but asking the other workers does not.
  std::vector<Dataset> of_workers;
  for (int worker = 0; worker < workers.num_workers; ++worker) of_workers.push_back(dataset_of(worker));
  if (are_counted(of_workers) || !workers.any_worker_has_data) input->datasets_of_workers = std::move(of_workers);
  return DistributedDataset(std::move(input));
}

InputContext context_of(const InputWorkers& workers, int pipelines_per_worker, int pipeline) {
  const int replicas = static_cast<int>(workers.devices.size()) * workers.num_workers;
  return InputContext(workers.num_workers * pipelines_per_worker, workers.pipeline_id * pipelines_per_worker + pipeline,
                      workers.num_replicas_in_sync > 0 ? workers.num_replicas_in_sync : replicas);
}

}  // namespace

std::vector<std::int64_t> rebatch(std::int64_t global_batch, int replicas) {
  return batch_sizes_for_worker(global_batch, 1, replicas, 0);
}

DistributedDataset distribute_dataset(const Dataset& dataset, const InputWorkers& workers) {
  if (workers.options.experimental_replication_mode == InputReplicationMode::per_replica) {
    throw NotImplementedError("the replication mode PER_REPLICA is for distribute_datasets_from_function");
  }
  check_input_workers(workers);
  return sharded_dataset(dataset, workers);
}

DistributedDataset distribute_datasets_from_function(const DatasetFromContext& function, const InputWorkers& workers) {
  check_input_workers(workers);
  const bool per_replica = workers.options.experimental_replication_mode == InputReplicationMode::per_replica;
  const int pipelines = per_replica ? static_cast<int>(workers.devices.size()) : 1;
  std::vector<Dataset> datasets;
  for (int i = 0; i < pipelines; ++i) datasets.push_back(function(context_of(workers, pipelines, i)));
  return distribute_as_is(std::move(datasets), workers, steps_ahead(workers.options));
}

DistributedDataset distribute_as_is(std::vector<Dataset> datasets, const InputWorkers& workers, int steps_ahead) {
  check_input_workers(workers);
  if (datasets.size() != 1 && datasets.size() != workers.devices.size()) {
    throw ValueError("distributed input needs one dataset for all replicas, or one for each");
  }
  // The elements' form is only needed to make empty elements, and finding it may call the user's functions.
  const ElementSpec spec = workers.enable_partial_batch_handling ? datasets.front().element_spec() : ElementSpec{};
  return DistributedDataset(std::make_shared<DistributedInput>(std::move(datasets), spec, workers, steps_ahead));
}

DistributedDataset::DistributedDataset(const Dataset& dataset, Worker& worker, std::vector<Device*> devices)
    : DistributedDataset(nullptr) {
  const int replicas = static_cast<int>(devices.size());
  for (const TensorSpec& component : dataset.element_spec().components) {
    if (component.dimensions.empty()) {
      throw ValueError("a distributed dataset must be batched by the global batch size");
    }
  }
  // One worker has nothing to shard, and batches that are not sharded are divided exactly.
  const InputWorkers workers{.worker = worker, .devices = std::move(devices), .num_replicas_in_sync = replicas};
  *this = distribute_dataset(dataset.with_options({.auto_shard_policy = AutoShardPolicy::off}), workers);
}

ElementSpec DistributedDataset::element_spec() const {
  return input_->element_spec();
}

ElementSpec DistributedDataset::optional_element_spec() const {
  return input_->is_infinite ? input_->spec : input_->spec.with_row_count(TensorSpec::kUnknown);
}

std::int64_t DistributedDataset::cardinality() const {
  return input_->datasets.front().cardinality();
}

const std::vector<Dataset>& DistributedDataset::datasets() const {
  return input_->datasets;
}

}  // namespace tandem
