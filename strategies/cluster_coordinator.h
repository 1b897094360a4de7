// tf.distribute.coordinator.ClusterCoordinator: schedules functions on the workers of a ParameterServerStrategyV2.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "strategies/input/distributed_dataset.h"
#include "strategies/parameter_server_v2.h"

namespace tandem {

class ClusterCoordinator;

// What a scheduled function will have returned.
class RemoteValue {
 public:
  // Waits for the function. Rethrows what it threw; RuntimeError for one that was cancelled.
  Value fetch() const;
  bool is_ready() const;

 private:
  friend class ClusterCoordinator;
  struct State;
  explicit RemoteValue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// One object for each worker: an iterator, a cache.
template <typename T>
class PerWorkerValues {
 public:
  PerWorkerValues(ClusterCoordinator& coordinator, std::vector<std::shared_ptr<T>> values)
      : coordinator_(&coordinator), values_(std::move(values)) {}
  // Of the worker that the calling function runs on. RuntimeError outside scheduled functions.
  T& current() const;
  T& of_worker(int worker) const { return *values_.at(static_cast<std::size_t>(worker)); }

 private:
  ClusterCoordinator* coordinator_;
  std::vector<std::shared_ptr<T>> values_;
};

class ClusterCoordinator {
 public:
  using Function = std::function<Value()>;

  // Calls `program` with a coordinator whose workers run what it schedules, one function a worker at a time, in the
  // order in which workers become free. Returns when `program` has and everything scheduled is done; rethrows its
  // error, or that of a function that nobody joined.
  static void coordinate(ParameterServerStrategyV2& strategy, const std::function<void(ClusterCoordinator&)>& program);

  ParameterServerStrategyV2& strategy() const { return strategy_; }

  // Returns at once. The function runs in the strategy's cross-replica context on some worker: run() uses that worker's
  // devices. After a function has failed, throws its error once; what was not begun by then is cancelled.
  RemoteValue schedule(Function function);
  // Waits until everything scheduled is done. Throws the first error of a function, once.
  void join();
  bool done() const;
  Value fetch(const RemoteValue& value) const { return value.fetch(); }

  // Calls `make` once on each worker, now; PER_WORKER datasets, each the worker's own input pipeline.
  PerWorkerValues<DistributedIterator> create_per_worker_dataset(const DatasetFunction& make);
  int worker_index() const;  // of the calling function; RuntimeError outside scheduled functions

 private:
  struct Closure;
  explicit ClusterCoordinator(ParameterServerStrategyV2& strategy);
  void serve(int worker);
  void execute(int worker, Closure& closure);
  void stop();
  void cancel_queue();
  void throw_error();

  ParameterServerStrategyV2& strategy_;
  std::unique_ptr<Monitor> monitor_;  // of what follows, and of the closures' states
  std::deque<std::shared_ptr<Closure>> queue_;
  int running_ = 0;
  bool is_stopped_ = false;
  std::exception_ptr error_;
};

template <typename T>
T& PerWorkerValues<T>::current() const {
  return of_worker(coordinator_->worker_index());
}

}  // namespace tandem
