#include "strategies/input/input_context.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"

namespace tandem {

std::int64_t InputContext::get_per_replica_batch_size(std::int64_t global_batch_size) const {
  if (global_batch_size % num_replicas_in_sync_ != 0) {
    throw ValueError(fmt::format("the global batch size {} is not divisible by {}, the number of replicas in sync",
                                 global_batch_size, num_replicas_in_sync_));
  }
  return global_batch_size / num_replicas_in_sync_;
}

std::string InputContext::text() const {
  return fmt::format("tf.distribute.InputContext(input pipeline id {}, total: {})", input_pipeline_id_,
                     num_input_pipelines_);
}

std::string ValueContext::text() const {
  return fmt::format("tf.distribute.ValueContext(replica id {}, total replicas in sync: {})", replica_id_in_sync_group_,
                     num_replicas_in_sync_);
}

void check_input_options(const InputOptions& options) {
  const bool is_per_replica = options.experimental_replication_mode == InputReplicationMode::per_replica;
  if (options.experimental_place_dataset_on_device && !is_per_replica) {
    throw ValueError("a dataset is placed on a device only in the replication mode PER_REPLICA");
  }
  if (options.experimental_place_dataset_on_device && options.experimental_fetch_to_device.value_or(false)) {
    throw ValueError("experimental_place_dataset_on_device and experimental_fetch_to_device exclude each other");
  }
  if (options.experimental_per_replica_buffer_size < 0) {
    throw ValueError(
        fmt::format("a buffer of {} steps, must be at least 0", options.experimental_per_replica_buffer_size));
  }
}

}  // namespace tandem
