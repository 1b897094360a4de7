// tf.distribute.coordinator.ClusterCoordinator: schedules functions on the workers of a ParameterServerStrategyV2.
//
// Each function runs at least once. When its worker is lost meanwhile (UnavailableError, Worker::is_lost()), it goes
// back into the queue and another worker takes it: what it had done until then, such as an update of a variable, is
// done twice. The other workers go on. A worker that comes back is given functions again once its per-worker datasets
// are made anew. A parameter server is not replaced: the third function that finds one lost ends with the
// UnavailableError.
//
// Threads: the coordinator's program and the scheduled functions may call a ClusterCoordinator and a RemoteValue at the
// same time.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/input/distributed_dataset.h"
#include "strategies/servers/parameter_server_v2.h"

namespace tandem {

// The result of a scheduled function, which may still be running. Copies refer to the same result. It may be fetched at
// any time, also after ClusterCoordinator::coordinate() has returned and after the engine's run has ended: by then
// every function has ended or was cancelled. (The tensors of a result live no longer than the run.)
class RemoteValue {
 public:
  // Waits until the function has ended and returns its result. Rethrows what the function threw; RuntimeError when it
  // was cancelled.
  Value fetch() const;
  // Tells whether fetch() would return immediately.
  bool is_ready() const;

 private:
  friend class ClusterCoordinator;
  struct State;
  explicit RemoteValue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// One object for each worker, for example an iterator or a cache. Refers to the strategy, which must outlive it.
template <typename T>
class PerWorkerValues {
 public:
  PerWorkerValues(const ParameterServerStrategyV2& strategy, std::vector<std::shared_ptr<T>> values)
      : strategy_(&strategy), values_(std::make_shared<std::vector<std::shared_ptr<T>>>(std::move(values))) {}
  // The object of the worker that the calling function was scheduled on. RuntimeError outside scheduled functions.
  T& current() const { return of_worker(strategy_->scheduled_worker()); }
  T& of_worker(int worker) const { return *values_->at(static_cast<std::size_t>(worker)); }

 private:
  friend class ClusterCoordinator;
  const ParameterServerStrategyV2* strategy_;
  std::shared_ptr<std::vector<std::shared_ptr<T>>> values_;  // a worker that comes back gets a new one
};

class ClusterCoordinator {
 public:
  using Function = std::function<Value()>;

  // Calls `program` with a coordinator whose workers run what the program schedules: one function at a time on each
  // worker, in the order in which workers become free. Returns when the program has returned and everything scheduled
  // has ended. Rethrows the program's exception, or that of a function that nobody joined.
  static void coordinate(ParameterServerStrategyV2& strategy, const std::function<void(ClusterCoordinator&)>& program);

  ParameterServerStrategyV2& strategy() const { return strategy_; }

  // Queues a function and returns; waits where kMostQueued are queued already. The function runs in the strategy's
  // cross-replica context on some worker: run() uses that worker's devices. The first exception of a function cancels
  // all functions that have not begun, and the next call of schedule() or join() rethrows it, once.
  static constexpr std::size_t kMostQueued = 256 * 1024;
  RemoteValue schedule(Function function);
  // The same for a function that every worker serves under this name (worker_functions.h), in the worker's process.
  // TypeError for arguments that cannot be sent: variables of other strategies, or with constraints.
  RemoteValue schedule(std::string name, Value::Parts arguments = {});
  // Waits until everything scheduled has ended. Rethrows the first exception of a function, once.
  void join();
  // Tells whether everything scheduled has ended.
  bool done() const;
  Value fetch(const RemoteValue& value) const { return value.fetch(); }

  // Calls `make` once for each worker, before it returns; each dataset is that worker's own input pipeline.
  PerWorkerValues<DistributedIterator> create_per_worker_dataset(const DatasetFunction& make);
  // The worker that the calling function was scheduled on. RuntimeError outside scheduled functions.
  int worker_index() const { return strategy_.scheduled_worker(); }

 private:
  struct Closure;
  explicit ClusterCoordinator(ParameterServerStrategyV2& strategy);
  RemoteValue enqueue(std::function<Value(int worker)> function);
  void run_functions(int worker);
  void run(int worker, int losses, const std::shared_ptr<Closure>& closure);
  bool is_to_run_again(int worker, int losses, const std::exception_ptr& error);
  // A worker is meant by its place among those of the strategy: see Worker.
  bool is_lost(int worker) const;
  int losses_of(int worker) const;
  bool is_any_server_lost() const;
  std::optional<int> await_return(int worker);
  void stop();
  void throw_error();

  ParameterServerStrategyV2& strategy_;
  const int number_;                  // of this worker's coordinators
  std::shared_ptr<Monitor> monitor_;  // guards the members below and wakes those who wait for a function
  std::deque<std::shared_ptr<Closure>> queue_;
  int running_ = 0;
  bool is_stopped_ = false;
  std::exception_ptr error_;
  int lost_servers_seen_ = 0;                             // by functions
  std::vector<std::function<void(int worker)>> remakes_;  // what a worker needs that comes back
};

}  // namespace tandem
