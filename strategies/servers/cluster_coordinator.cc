#include "strategies/servers/cluster_coordinator.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/servers/serving_worker.h"
#include "strategies/servers/value_message.h"

namespace tandem {

// `value` and `error` are written once, before is_done is set, and only read afterwards. So a finished result can be
// read without the monitor, which belongs to the engine's run.
struct RemoteValue::State {
  explicit State(std::shared_ptr<Monitor> of_coordinator) : monitor(std::move(of_coordinator)) {}

  void finish(Value result, std::exception_ptr failure) {
    value = std::move(result);
    error = std::move(failure);
    is_done.store(true, std::memory_order_release);
  }

  std::shared_ptr<Monitor> monitor;  // notified after is_done has been set
  std::atomic<bool> is_done = false;
  Value value{};
  std::exception_ptr error{};
};

// A scheduled function. One that is dropped before it has run counts as cancelled.
struct ClusterCoordinator::Closure {
  Closure(std::function<Value(int worker)> scheduled, std::shared_ptr<RemoteValue::State> result)
      : function(std::move(scheduled)), state(std::move(result)) {}
  ~Closure() {
    if (state->is_done) return;
    state->finish({}, std::make_exception_ptr(RuntimeError("a scheduled function was cancelled")));
  }
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;

  std::function<Value(int worker)> function;  // calls it on that worker
  std::shared_ptr<RemoteValue::State> state;
};

Value RemoteValue::fetch() const {
  if (!is_ready()) {
    const std::lock_guard lock(*state_->monitor);
    while (!is_ready()) state_->monitor->wait("a function that was scheduled on a worker");
  }
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->value;
}

bool RemoteValue::is_ready() const {
  return state_->is_done.load(std::memory_order_acquire);
}

namespace {

int next_number(Worker& worker) {
  const auto count = std::static_pointer_cast<std::atomic<int>>(
      worker.shared().kept("number of coordinators", [] { return std::make_shared<std::atomic<int>>(0); }));
  return count->fetch_add(1);
}

}  // namespace

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategyV2& strategy)
    : strategy_(strategy),
      number_(next_number(strategy.extended().worker())),
      monitor_(strategy.extended().worker().tasks().make_monitor()) {
  strategy.note_coordinator();
  strategy.extended().worker().watch_workers(monitor_);
}

// Task 0 runs the coordinator's program, task 1 + k hands functions to worker k.
void ClusterCoordinator::coordinate(ParameterServerStrategyV2& strategy,
                                    const std::function<void(ClusterCoordinator&)>& program) {
  ClusterCoordinator coordinator(strategy);
  const int workers = strategy.parameter_server_extended().worker_count();
  strategy.extended().worker().tasks().run_concurrently(1 + workers, [&](int task) {
    if (task > 0) return coordinator.run_functions(task - 1);
    try {
      program(coordinator);
      coordinator.join();
    } catch (...) {
      coordinator.stop();
      throw;
    }
    coordinator.stop();
  });
}

void ClusterCoordinator::stop() {
  const std::lock_guard lock(*monitor_);
  queue_.clear();
  is_stopped_ = true;
  monitor_->notify_all();
}

void ClusterCoordinator::run_functions(int worker) {
  const std::string reason = fmt::format("a function to run on worker {}", worker);
  int losses = 0;  // after which the worker has got all that it needs
  for (;;) {
    std::shared_ptr<Closure> closure;
    {
      const std::lock_guard lock(*monitor_);
      while (queue_.empty() && !is_stopped_ && losses_of(worker) == losses) monitor_->wait(reason);
      if (losses_of(worker) == losses) {
        if (queue_.empty()) return;
        closure = std::move(queue_.front());
        queue_.pop_front();
        ++running_;
        monitor_->notify_all();  // there is a place in the queue
      }
    }
    if (closure) {
      run(worker, losses, closure);
    } else if (const std::optional<int> known = await_return(worker)) {
      losses = *known;
    } else {
      return;
    }
  }
}

bool ClusterCoordinator::is_lost(int worker) const {
  const int index = strategy_.parameter_server_extended().devices_of_worker(worker).front()->worker();
  return strategy_.extended().worker().is_lost(index);
}

int ClusterCoordinator::losses_of(int worker) const {
  const int index = strategy_.parameter_server_extended().devices_of_worker(worker).front()->worker();
  return strategy_.extended().worker().losses(index);
}

bool ClusterCoordinator::is_any_server_lost() const {
  const Worker& here = strategy_.extended().worker();
  const auto cluster = here.cluster();
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (cluster[i].job == "ps" && here.is_lost(static_cast<int>(i))) return true;
  }
  return false;
}

// Waits until the worker is back, and makes anew what it needs. Returns how often it was lost by then; nothing if the
// coordinator ends before.
std::optional<int> ClusterCoordinator::await_return(int worker) {
  const std::string reason = fmt::format("worker {}, which is lost", worker);
  for (;;) {
    std::vector<std::function<void(int worker)>> remakes;
    int losses = 0;
    {
      const std::lock_guard lock(*monitor_);
      while (is_lost(worker) && !is_stopped_) monitor_->wait(reason);
      if (is_stopped_) return std::nullopt;
      remakes = remakes_;
      losses = losses_of(worker);
    }
    try {
      for (const auto& remake : remakes) remake(worker);
      return losses;
    } catch (const UnavailableError&) {
      if (losses_of(worker) == losses) throw;
    }
  }
}

// The caller holds the monitor.
bool ClusterCoordinator::is_to_run_again(int worker, int losses, const std::exception_ptr& error) {
  constexpr int kMostServersSeen = 3;
  if (!error || error_ || is_stopped_) return false;
  try {
    std::rethrow_exception(error);
  } catch (const UnavailableError&) {
    if (losses_of(worker) != losses) return true;
    return is_any_server_lost() && ++lost_servers_seen_ < kMostServersSeen;
  } catch (...) {
    return false;
  }
}

void ClusterCoordinator::run(int worker, int losses, const std::shared_ptr<Closure>& closure) {
  Value value;
  std::exception_ptr error;
  try {
    value = closure->function(worker);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(*monitor_);
    if (is_to_run_again(worker, losses, error)) {
      --running_;
      queue_.push_back(closure);
      return monitor_->notify_all();
    }
    // Decided together: between two decisions, schedule() may throw the first error, and this one would follow.
    if (error && !error_) {
      error_ = error;
      queue_.clear();
    }
  }
  closure->function = nullptr;  // whoever sees the end of a function finds nothing of it held any more
  const std::lock_guard lock(*monitor_);
  closure->state->finish(std::move(value), error);
  --running_;
  monitor_->notify_all();
}

// The caller holds the monitor.
void ClusterCoordinator::throw_error() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

RemoteValue ClusterCoordinator::schedule(Function function) {
  return enqueue([this, function = std::move(function)](int worker) {
    ParameterServerV2Extended& extended = strategy_.parameter_server_extended();
    const ParameterServerV2Extended::Assignment assignment(extended, worker);
    const Scope scope = strategy_.scope();
    Value value = function();
    for (Device* device : extended.devices_of_worker(worker)) device->synchronize();
    return value;
  });
}

RemoteValue ClusterCoordinator::schedule(std::string name, Value::Parts arguments) {
  ByteWriter unused;
  std::vector<Tensor> tensors;
  put_value(unused, tensors, Value::tuple(arguments), strategy_);  // throws now if the arguments cannot be sent
  return enqueue([this, name = std::move(name), arguments = std::move(arguments)](int worker) {
    return ServingWorker(strategy_, worker, number_).call(name, arguments);
  });
}

RemoteValue ClusterCoordinator::enqueue(std::function<Value(int worker)> function) {
  const std::lock_guard lock(*monitor_);
  while (queue_.size() >= kMostQueued && !error_) monitor_->wait("a place in the queue of scheduled functions");
  throw_error();
  auto state = std::make_shared<RemoteValue::State>(monitor_);
  queue_.push_back(std::make_shared<Closure>(std::move(function), state));
  monitor_->notify_all();
  return RemoteValue(state);
}

void ClusterCoordinator::join() {
  const std::lock_guard lock(*monitor_);
  while (!queue_.empty() || running_ > 0) monitor_->wait("all scheduled functions to end");
  throw_error();
}

bool ClusterCoordinator::done() const {
  const std::lock_guard lock(*monitor_);
  return queue_.empty() && running_ == 0;
}

PerWorkerValues<DistributedIterator> ClusterCoordinator::create_per_worker_dataset(const DatasetFunction& make) {
  ParameterServerV2Extended& extended = strategy_.parameter_server_extended();
  const auto of_worker = [this, make](int worker) {
    const ParameterServerV2Extended::Assignment assignment(strategy_.parameter_server_extended(), worker);
    return std::make_shared<DistributedIterator>(strategy_.distribute_datasets_from_function(make).iterator());
  };
  std::vector<std::shared_ptr<DistributedIterator>> iterators;
  for (int worker = 0; worker < extended.worker_count(); ++worker) iterators.push_back(of_worker(worker));
  PerWorkerValues<DistributedIterator> made(strategy_, std::move(iterators));
  const std::lock_guard lock(*monitor_);
  remakes_.push_back([values = made.values_, of_worker](int worker) {
    values->at(static_cast<std::size_t>(worker)) = of_worker(worker);
  });
  return made;
}

}  // namespace tandem
