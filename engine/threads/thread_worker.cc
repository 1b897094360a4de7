#include "engine/threads/thread_worker.h"

#include <fmt/format.h>

#include "engine/threads/thread_monitor.h"

namespace tandem::threads {
namespace {

// One run_concurrently: who has returned, and how.
class Join final : public Wait {
 public:
  explicit Join(int n) : errors_(static_cast<std::size_t>(n)), missing_(n) {}

  void call(const std::function<void(int)>& function, int i) {
    try {
      function(i);
    } catch (...) {
      errors_[static_cast<std::size_t>(i)] = std::current_exception();
    }
  }
  // The last use of this object by a function's thread.
  void leave(Waiter& caller) {
    if (missing_.fetch_sub(1) == 1) caller.unpark();
  }
  bool is_over() const override { return missing_.load() == 0; }
  std::string text() const override { return fmt::format("{} of its concurrent functions", missing_.load()); }

  // The first by index; but one that only tells that the run was stopped gives way to any that tells why.
  void rethrow() const {
    std::exception_ptr consequence;
    for (const std::exception_ptr& error : errors_) {
      if (!error) continue;
      if (!is_consequence(error)) std::rethrow_exception(error);
      if (!consequence) consequence = error;
    }
    if (consequence) std::rethrow_exception(consequence);
  }

 private:
  static bool is_consequence(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const RunStopped&) {
      return true;
    } catch (const DeadlockError&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  std::vector<std::exception_ptr> errors_;
  std::atomic<int> missing_;
};

}  // namespace

ThreadWorker::ThreadWorker(Cluster& cluster, int index, std::string job, int task)
    : cluster_(cluster), job_(std::move(job)), task_(task), state_(index) {}

void ThreadWorker::add_device(std::unique_ptr<LocalDevice> device, bool is_compute_device) {
  if (is_compute_device) devices_.push_back(device.get());
  owned_devices_.push_back(std::move(device));
}

// The caller's own thread takes the first function: one hand-over less. It does not return before all have ended,
// whatever happens to the run, because they use this frame.
void ThreadWorker::run_concurrently(int n, const std::function<void(int)>& function) {
  TANDEM_CHECK(n >= 0, "a negative number of functions");
  if (cluster_.context().control.is_stopped()) cluster_.context().control.throw_stopped();
  if (n == 0) return;
  Waiter& caller = Waiter::of_this_thread();
  const std::string& name = Task::current().name();
  Join join(n);
  std::vector<Job> jobs(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    jobs[static_cast<std::size_t>(i)] = {.name = fmt::format("{} replica {}", name, i),
                                         .worker = this,
                                         .run = [&join, &function, i] { join.call(function, i); },
                                         .ended = [&join, &caller] { join.leave(caller); }};
  }
  std::exception_ptr start_error;
  for (int i = 1; i < n; ++i) {
    try {
      cluster_.pool().start(jobs[static_cast<std::size_t>(i)]);
    } catch (...) {  // those that run are waited for; the rest count as ended
      start_error = std::current_exception();
      cluster_.context().control.stop();
      for (; i < n; ++i) join.leave(caller);
    }
  }
  if (!start_error) run_as_task(caller, jobs.front());
  join.leave(caller);
  caller.wait(join, nullptr, Stoppable::no);
  if (start_error) std::rethrow_exception(start_error);
  join.rethrow();
}

namespace {

// The jobs of one run_in_turn. A thread works them off one after the other; where one blocks, another thread goes on
// with the next.
class Turns {
 public:
  Turns(Cluster& cluster, Worker& worker, int n, const std::function<void(int)>& function)
      : cluster_(cluster), caller_(Waiter::of_this_thread()), join_(n), jobs_(static_cast<std::size_t>(n)) {
    const std::string& name = Task::current().name();
    for (int i = 0; i < n; ++i) {
      jobs_[static_cast<std::size_t>(i)] = {.name = fmt::format("{} replica {}", name, i),
                                            .worker = &worker,
                                            .run = [this, &function, i] { join_.call(function, i); },
                                            .ended = {}};
    }
  }

  void run() {
    const int done = work_from(0, caller_);
    for (int i = 0; i < done; ++i) join_.leave(caller_);
    caller_.wait(join_, nullptr, Stoppable::no);
    if (start_error_) std::rethrow_exception(start_error_);
    join_.rethrow();
  }

 private:
  // A thread that was woken to go on; how many jobs it has ended is told when it uses nothing of ours any more.
  struct Carrier {
    Job job;
    int done = 0;
  };

  // Returns how many jobs this thread has worked off.
  int work_from(std::size_t first, Waiter& waiter) {
    std::size_t i = first;
    for (bool goes_on = true; goes_on && i < jobs_.size(); ++i) {
      BeforeBlocking before{.call = [&] {
        if (goes_on && i + 1 < jobs_.size()) {
          goes_on = false;
          hand_over(i + 1);
        }
      }};
      before.outer = waiter.set_before_blocking(&before);
      run_as_task(waiter, jobs_[i]);
      waiter.set_before_blocking(before.outer);
    }
    return static_cast<int>(i - first);
  }

  // Without a thread for them the rest count as ended, and the run stops.
  void hand_over(std::size_t next) {
    carriers_[next] = std::make_unique<Carrier>();
    Carrier& carrier = *carriers_[next];
    carrier.job = {.name = jobs_[next].name,
                   .worker = jobs_[next].worker,
                   .run = [this, &carrier, next] { carrier.done = work_from(next, Waiter::of_this_thread()); },
                   .ended = [this, &carrier] { leave(carrier.done); }};
    try {
      cluster_.pool().start(carrier.job);
    } catch (...) {
      start_error_ = std::current_exception();
      cluster_.context().control.stop();
      leave(static_cast<int>(jobs_.size() - next));
    }
  }

  // The last use of this object by a thread, but for the caller's.
  void leave(int count) {
    Waiter& caller = caller_;
    for (int i = 0; i < count; ++i) join_.leave(caller);
  }

  Cluster& cluster_;
  Waiter& caller_;
  Join join_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<Carrier>> carriers_{jobs_.size()};
  std::exception_ptr start_error_;
};

}  // namespace

void ThreadWorker::run_in_turn(int n, const std::function<void(int)>& function) {
  TANDEM_CHECK(n >= 0, "a negative number of functions");
  if (cluster_.context().control.is_stopped()) cluster_.context().control.throw_stopped();
  if (n > 0) Turns(cluster_, *this, n, function).run();
}

std::unique_ptr<Monitor> ThreadWorker::make_monitor() {
  return std::make_unique<ThreadMonitor>(cluster_.context().control);
}

Communicator& ThreadWorker::communicator(std::span<const DeviceId> devices) {
  std::vector<DeviceId> key(devices.begin(), devices.end());
  const std::lock_guard lock(mutex_);
  if (const auto found = communicators_.find(key); found != communicators_.end()) return *found->second;
  auto made = std::make_unique<ThreadCommunicator>(cluster_.group(devices), index());
  return *communicators_.emplace(std::move(key), std::move(made)).first->second;
}

void ThreadWorker::begin_step(int step) {
  TANDEM_CHECK(step >= 0, "a negative step");
  TANDEM_CHECK(state_.step() == kNoStep, "a step begins within a step");
  state_.set_step(step);
  step_start_ns_ = now();
}

void ThreadWorker::end_step() {
  TANDEM_CHECK(state_.step() != kNoStep, "a step ends that has not begun");
  synchronize_devices();
  steps_.push_back({.kind = RecordKind::step,
                    .category = Category::other,
                    .name = fmt::format("step {}", state_.step()),
                    .worker = index(),
                    .step = state_.step(),
                    .start_ns = step_start_ns_,
                    .end_ns = now()});
  state_.set_step(kNoStep);
}

void ThreadWorker::synchronize_devices() {
  for (const auto& device : owned_devices_) device->synchronize();
  state_.throw_if_failed();
}

void ThreadWorker::finish(std::vector<Record>& records) {
  for (const auto& device : owned_devices_) device->finish(records);
  records.insert(records.end(), std::move_iterator(steps_.begin()), std::move_iterator(steps_.end()));
}

}  // namespace tandem::threads
