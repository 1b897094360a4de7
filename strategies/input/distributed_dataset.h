// tf.distribute.DistributedDataset and DistributedIterator: a dataset's elements, dealt to the replicas of all workers
// and brought to their devices.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/input/dataset.h"
#include "strategies/input/input_workers.h"
#include "strategies/values/value.h"

namespace tandem {

// How a global batch is divided among `replicas` of one worker: the first ones get one more where it does not divide.
std::vector<std::int64_t> rebatch(std::int64_t global_batch, int replicas);

struct DistributedInput;  // what a dataset and its iterators share

// tf.experimental.Optional.
class OptionalValue {
 public:
  OptionalValue() = default;
  explicit OptionalValue(std::optional<Value> value) : value_(std::move(value)) {}
  bool has_value() const { return value_.has_value(); }
  const Value& get_value() const;  // InvalidArgumentError when there is none

 private:
  std::optional<Value> value_;
};

// All three ways to ask give one step: an element for every local replica, structured like the dataset's elements, each
// component a per-replica value (a bare one with one replica). Copies of the next step are already under way on the
// input streams; compute streams wait for the step they are given. ValueError in a replica context.
//
// The end: where batches may be partial, steps go on until all replicas of all workers are out of data, and replicas
// without get elements of no rows. Where shapes are static or the dataset is infinite, the first replica without data
// ends the iteration and what others got in that step is dropped.
class DistributedIterator {
 public:
  explicit DistributedIterator(std::shared_ptr<const DistributedInput> input);
  DistributedIterator(DistributedIterator&&) = default;
  DistributedIterator& operator=(DistributedIterator&&) = default;

  std::optional<Value> next();           // nothing at the end
  Value get_next();                      // OutOfRangeError at the end
  OptionalValue get_next_as_optional();  // partial steps also where shapes are static
  ElementSpec element_spec() const;      // of one replica's element: see DistributedDataset

 private:
  struct Step {
    std::vector<std::optional<Element>> elements;  // per replica
    bool is_complete = false;
    std::optional<Value> value;
    std::vector<Event> ready{};  // per device
    std::exception_ptr error{};
  };
  std::optional<Value> deliver(bool gives_partial_steps);
  void fetch();
  void bring(Step& step) const;
  bool goes_on(bool has_data);

  std::shared_ptr<const DistributedInput> input_;
  std::vector<DatasetIterator> iterators_;  // one for all replicas, or one for each
  std::deque<Step> ahead_;
  std::int64_t steps_fetched_ = 0;
  std::optional<std::int64_t> steps_of_all_workers_;
  bool has_ended_ = false;
};

class DistributedDataset {
 public:
  // One worker alone, whose devices divide each global batch exactly. ValueError for a dataset without batches.
  DistributedDataset(Dataset dataset, Worker& worker, std::vector<Device*> devices);
  explicit DistributedDataset(std::shared_ptr<const DistributedInput> input) : input_(std::move(input)) {}

  // From the start. Later iterations repeat what cache() kept and shuffle anew where they should.
  DistributedIterator iterator() const { return DistributedIterator(input_); }

  // Of one replica's element. The batch dimension is unknown where steps may be partial.
  ElementSpec element_spec() const;
  // What get_next_as_optional() gives: static only for infinite datasets.
  ElementSpec optional_element_spec() const;
  std::int64_t cardinality() const;              // elements of this worker
  const std::vector<Dataset>& datasets() const;  // of this worker, as rebatched and sharded

 private:
  std::shared_ptr<const DistributedInput> input_;
};

// tf.distribute.Strategy.experimental_distribute_dataset. The dataset is batched by the global batch size: its batches
// are divided among the replicas in sync, if those are known, then sharded over the workers by the dataset's policy
// (see auto_shard). ValueError: replicas that are no multiple of the workers, scalars to divide, wrong options.
// NotImplementedError for the mode PER_REPLICA.
DistributedDataset distribute_dataset(const Dataset& dataset, const InputWorkers& workers);

// tf.distribute.Strategy.distribute_datasets_from_function. What the function makes is neither rebatched nor sharded;
// consecutive elements go to consecutive replicas, or in the mode PER_REPLICA it is called for every replica.
using DatasetFromContext = std::function<Dataset(const InputContext& context)>;
DistributedDataset distribute_datasets_from_function(const DatasetFromContext& function, const InputWorkers& workers);

// The datasets as they are: one for all of this worker's replicas, or one for each. `steps_ahead` counts the step in
// use. For 1.x input and for strategies that prepare datasets themselves.
DistributedDataset distribute_as_is(std::vector<Dataset> datasets, const InputWorkers& workers, int steps_ahead);

}  // namespace tandem
