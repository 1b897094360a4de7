// The arguments of input functions and the options of distributed input, named as in tf.distribute.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace tandem {

class Dataset;
class Element;

class InputContext {
 public:
  explicit InputContext(int num_input_pipelines = 1, int input_pipeline_id = 0, int num_replicas_in_sync = 1)
      : num_input_pipelines_(num_input_pipelines),
        input_pipeline_id_(input_pipeline_id),
        num_replicas_in_sync_(num_replicas_in_sync) {}

  int num_input_pipelines() const { return num_input_pipelines_; }
  int input_pipeline_id() const { return input_pipeline_id_; }
  int num_replicas_in_sync() const { return num_replicas_in_sync_; }
  // ValueError when the global batch is not divisible by the number of replicas.
  std::int64_t get_per_replica_batch_size(std::int64_t global_batch_size) const;
  std::string text() const;

 private:
  int num_input_pipelines_, input_pipeline_id_, num_replicas_in_sync_;
};

// The argument of the function given to experimental_distribute_values_from_function.
class ValueContext {
 public:
  explicit ValueContext(int replica_id_in_sync_group = 0, int num_replicas_in_sync = 1)
      : replica_id_in_sync_group_(replica_id_in_sync_group), num_replicas_in_sync_(num_replicas_in_sync) {}

  int replica_id_in_sync_group() const { return replica_id_in_sync_group_; }
  int num_replicas_in_sync() const { return num_replicas_in_sync_; }
  std::string text() const;

 private:
  int replica_id_in_sync_group_, num_replicas_in_sync_;
};

// Whether an input function makes one dataset per worker or one per replica.
enum class InputReplicationMode : std::uint8_t { per_worker, per_replica };

struct InputOptions {
  std::optional<bool> experimental_fetch_to_device{};  // false: values stay on the host. Nothing: true
  InputReplicationMode experimental_replication_mode = InputReplicationMode::per_worker;
  bool experimental_place_dataset_on_device = false;
  int experimental_per_replica_buffer_size = 1;  // steps brought to the devices ahead of the one in use
};

// Throws ValueError for a buffer size below 0, and for a dataset that is placed on a device in the mode PER_WORKER, or
// while elements are fetched to devices in the mode PER_REPLICA.
void check_input_options(const InputOptions& options);

// What make_input_fn_iterator() takes: a function that returns a dataset, or a function that makes one element.
using ElementFunction = std::function<Element()>;
using InputFunction = std::function<std::variant<Dataset, ElementFunction>(const InputContext& context)>;

}  // namespace tandem
