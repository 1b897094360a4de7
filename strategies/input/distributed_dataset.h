// tf.distribute.DistributedDataset and DistributedIterator: a dataset's elements, dealt to the replicas of all workers
// and copied to their devices.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/input/dataset.h"
#include "strategies/input/input_workers.h"
#include "strategies/values/value.h"

namespace tandem {

// Divides a global batch among the replicas of one worker. Where the division leaves a remainder, the first replicas
// get one row more.
std::vector<std::int64_t> rebatch(std::int64_t global_batch, int replicas);

class DistributedIteratorV1;
struct DistributedInput;  // shared by a dataset and its iterators

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

// Each of the three calls returns one step: an element for every local replica, structured like the dataset's elements,
// with a per-replica value for each component (a bare value if there is one replica). Where a dataset is divided among
// several replicas, a separate task makes elements ahead of their use. Elements are copied ahead on the input streams;
// compute streams wait for the copies of the step that is returned. ValueError in a replica context.
//
// The end: where batches may be partial, steps go on until all replicas of all workers are out of data, and replicas
// without data get elements of no rows. Where shapes are static or the dataset is infinite, the first replica without
// data ends the iteration, and the elements of the other replicas in that step are dropped.
class DistributedIterator {
 public:
  explicit DistributedIterator(std::shared_ptr<const DistributedInput> input);
  DistributedIterator(DistributedIterator&&) = default;
  DistributedIterator& operator=(DistributedIterator&&) = default;

  std::optional<Value> next();           // nothing at the end
  Value get_next();                      // OutOfRangeError at the end
  OptionalValue get_next_as_optional();  // partial steps also where shapes are static
  // Passes over the next steps as next() would, but brings nothing to the devices, and makes no elements where the
  // dataset can do without. Returns how many there were: fewer than `steps` at the end only. All workers skip alike.
  std::int64_t skip(std::int64_t steps);
  ElementSpec element_spec() const;  // see DistributedDataset

 private:
  struct Step {
    std::vector<std::optional<Element>> elements;  // per replica
    bool is_complete = false;
    std::optional<Value> value;
    std::vector<Event> ready{};  // per device
    std::exception_ptr error{};
  };
  std::optional<Value> deliver(bool gives_partial_steps);
  std::optional<Step> take(bool gives_partial_steps);
  void pass_over(std::int64_t steps);
  enum class Elements : bool { stay, go_to_devices };
  void fetch(Elements elements);
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
  // For a single worker, whose devices divide each global batch exactly. ValueError for a dataset without batches.
  DistributedDataset(const Dataset& dataset, Worker& worker, std::vector<Device*> devices);
  explicit DistributedDataset(std::shared_ptr<const DistributedInput> input) : input_(std::move(input)) {}

  // Starts at the first step. Later iterations repeat what cache() kept and shuffle anew where they should.
  DistributedIterator iterator() const { return DistributedIterator(input_); }

  // TensorFlow 1's forms (input/distributed_dataset_v1.h): iterators that begin at the first step again after
  // initialize().
  DistributedIteratorV1 make_one_shot_iterator() const;
  DistributedIteratorV1 make_initializable_iterator() const;

  // For `for (const Value& step : dataset)`: the steps of iterator().
  class Steps;
  Steps begin() const;
  std::default_sentinel_t end() const { return {}; }

  // The form of one replica's element. The batch dimension is unknown where steps may be partial.
  ElementSpec element_spec() const;
  // The form of the elements of get_next_as_optional(), which is static only for infinite datasets.
  ElementSpec optional_element_spec() const;
  std::int64_t cardinality() const;              // number of this worker's elements
  const std::vector<Dataset>& datasets() const;  // this worker's, rebatched and sharded

 private:
  std::shared_ptr<const DistributedInput> input_;
};

// The steps of one iteration over a distributed dataset, as an input iterator.
class DistributedDataset::Steps {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;

  explicit Steps(DistributedIterator from) : from_(std::move(from)), step_(from_.next()) {}
  const Value& operator*() const { return *step_; }
  const Value* operator->() const { return &*step_; }
  Steps& operator++() {
    step_ = from_.next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Steps& steps, std::default_sentinel_t /*end*/) { return !steps.step_; }

 private:
  DistributedIterator from_;
  std::optional<Value> step_;
};
inline DistributedDataset::Steps DistributedDataset::begin() const {
  return Steps(iterator());
}

// tf.distribute.Strategy.experimental_distribute_dataset. The dataset is batched by the global batch size. Its batches
// are divided among the replicas in sync, if their number is known, then sharded over the workers by the dataset's
// policy (see auto_shard). ValueError when the number of replicas is no multiple of that of the workers, for scalars
// that would have to be divided, and for wrong options. NotImplementedError for the mode PER_REPLICA.
DistributedDataset distribute_dataset(const Dataset& dataset, const InputWorkers& workers);

// tf.distribute.Strategy.distribute_datasets_from_function. The function's datasets are neither rebatched nor sharded.
// Consecutive elements go to consecutive replicas; in the mode PER_REPLICA the function is called for every replica.
using DatasetFromContext = std::function<Dataset(const InputContext& context)>;
DistributedDataset distribute_datasets_from_function(const DatasetFromContext& function, const InputWorkers& workers);

// Distributes datasets without a change: one for all of this worker's replicas, or one for each. `steps_ahead` includes
// the step in use. For TensorFlow 1's input and for strategies that prepare datasets themselves.
DistributedDataset distribute_as_is(std::vector<Dataset> datasets, const InputWorkers& workers, int steps_ahead);

}  // namespace tandem
