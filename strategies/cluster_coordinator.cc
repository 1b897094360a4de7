#include "strategies/cluster_coordinator.h"

#include <fmt/format.h>

#include <mutex>

#include "strategies/base/errors.h"

namespace tandem {

struct RemoteValue::State {
  Monitor* monitor = nullptr;
  bool is_done = false;
  Value value{};
  std::exception_ptr error{};
};

struct ClusterCoordinator::Closure {
  Function function;
  std::shared_ptr<RemoteValue::State> state;
};

Value RemoteValue::fetch() const {
  const std::lock_guard lock(*state_->monitor);
  while (!state_->is_done) state_->monitor->wait("a function that was scheduled on a worker");
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->value;
}

bool RemoteValue::is_ready() const {
  const std::lock_guard lock(*state_->monitor);
  return state_->is_done;
}

ClusterCoordinator::ClusterCoordinator(ParameterServerStrategyV2& strategy)
    : strategy_(strategy), monitor_(strategy.extended().worker().make_monitor()) {}

// Task 0 is the coordinator's program, task 1 + k hands functions to worker k.
void ClusterCoordinator::coordinate(ParameterServerStrategyV2& strategy,
                                    const std::function<void(ClusterCoordinator&)>& program) {
  ClusterCoordinator coordinator(strategy);
  const int workers = strategy.parameter_server_extended().worker_count();
  strategy.extended().worker().run_concurrently(1 + workers, [&](int task) {
    if (task > 0) return coordinator.serve(task - 1);
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
  cancel_queue();
  is_stopped_ = true;
  monitor_->notify_all();
}

void ClusterCoordinator::cancel_queue() {
  for (const std::shared_ptr<Closure>& closure : queue_) {
    closure->state->is_done = true;
    closure->state->error = std::make_exception_ptr(RuntimeError("a scheduled function was cancelled"));
  }
  queue_.clear();
}

void ClusterCoordinator::serve(int worker) {
  const std::string reason = fmt::format("a function to run on worker {}", worker);
  for (;;) {
    std::shared_ptr<Closure> closure;
    {
      const std::lock_guard lock(*monitor_);
      while (queue_.empty() && !is_stopped_) monitor_->wait(reason);
      if (queue_.empty()) return;
      closure = std::move(queue_.front());
      queue_.pop_front();
      ++running_;
    }
    execute(worker, *closure);
  }
}

void ClusterCoordinator::execute(int worker, Closure& closure) {
  ParameterServerV2Extended& extended = strategy_.parameter_server_extended();
  Value value;
  std::exception_ptr error;
  try {
    const ParameterServerV2Extended::Assignment assignment(extended, worker);
    const Scope scope = strategy_.scope();
    value = closure.function();
    for (Device* device : extended.devices_of_worker(worker)) device->synchronize();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(*monitor_);
  closure.state->value = std::move(value);
  closure.state->error = error;
  closure.state->is_done = true;
  --running_;
  if (error && !error_) {
    error_ = error;
    cancel_queue();
  }
  monitor_->notify_all();
}

// With the monitor held.
void ClusterCoordinator::throw_error() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

RemoteValue ClusterCoordinator::schedule(Function function) {
  const std::lock_guard lock(*monitor_);
  throw_error();
  auto state = std::make_shared<RemoteValue::State>();
  state->monitor = monitor_.get();
  queue_.push_back(std::make_shared<Closure>(Closure{std::move(function), state}));
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
  std::vector<std::shared_ptr<DistributedIterator>> iterators;
  for (int worker = 0; worker < extended.worker_count(); ++worker) {
    const ParameterServerV2Extended::Assignment assignment(extended, worker);
    iterators.push_back(
        std::make_shared<DistributedIterator>(strategy_.distribute_datasets_from_function(make).iterator()));
  }
  return {*this, std::move(iterators)};
}

int ClusterCoordinator::worker_index() const {
  const int worker = strategy_.parameter_server_extended().assigned_worker();
  if (worker < 0) throw RuntimeError("this is asked for in the coordinator's own program; ask in a scheduled function");
  return worker;
}

}  // namespace tandem
