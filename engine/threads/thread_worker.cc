#include "engine/threads/thread_worker.h"

#include <fmt/format.h>

#include "engine/threads/background_job.h"
#include "engine/threads/run.h"
#include "engine/threads/thread_monitor.h"

namespace tandem::threads {
namespace {

// The functions of one run_concurrently: which have returned, and how.
class Join final : public Wait {
 public:
  explicit Join(int n) : missing_(n) { errors_.resize(static_cast<std::size_t>(n)); }

  void call(const std::function<void(int)>& function, int i) {
    try {
      function(i);
    } catch (...) {
      errors_[static_cast<std::size_t>(i)] = std::current_exception();
    }
  }
  // Notes that a function has returned; its thread does not touch this object afterwards.
  void leave(Waiter& caller) {
    if (missing_.fetch_sub(1) == 1) caller.unpark();
  }
  bool is_over() const override { return missing_.load() == 0; }
  std::string text() const override { return fmt::format("{} of its concurrent functions", missing_.load()); }

  // Rethrows the first error by index, preferring errors that say why the run was stopped.
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

ThreadWorker::ThreadWorker(Run& run, int index)
    : SharedInProcess(static_cast<Worker&>(*this)), run_(run), state_(index) {}

std::span<const WorkerSpec> ThreadWorker::cluster() const {
  return run_.specs();
}

const Capabilities& ThreadWorker::capabilities() const {
  return run_.capabilities();
}

Device& ThreadWorker::device(const DeviceId& id) {
  return run_.device(id);
}

std::shared_ptr<void> ThreadWorker::object(std::string_view name, const Factory& make) {
  return run_.shared(name, make);
}

std::shared_ptr<void> ThreadWorker::kept(std::string_view name, const Factory& make) {
  return run_.kept(fmt::format("{} of worker {}", name, index()), make);
}

std::shared_ptr<SharedTensor> ThreadWorker::tensor(std::string_view name, const TensorFactory& make) {
  return run_.shared_tensor(*this, name, make);
}

std::shared_ptr<Mailbox> ThreadWorker::mailbox(int owner, std::string_view name) {
  return run_.mailbox(*this, owner, name);
}

void ThreadWorker::await_end_of_job() {
  run_.await_end_of_job(*this);
}

bool ThreadWorker::is_lost(int worker) const {
  const auto& faults = run_.context().faults;
  return faults && faults->is_lost(worker);
}

int ThreadWorker::losses(int worker) const {
  const auto& faults = run_.context().faults;
  return faults ? faults->losses(worker) : 0;
}

void ThreadWorker::watch_workers(std::shared_ptr<Monitor> monitor) {
  if (const auto& faults = run_.context().faults) faults->watch(std::static_pointer_cast<ThreadMonitor>(monitor));
}

Nanoseconds ThreadWorker::now() {
  return run_.context().now();
}

void ThreadWorker::add_device(std::unique_ptr<LocalDevice> device, bool is_compute_device) {
  if (is_compute_device) devices_.push_back(device.get());
  owned_devices_.push_back(std::move(device));
}

// Runs the first function on the caller's own thread, which saves a hand-over. Returns only when all have ended,
// whatever happens to the run, because they use this frame.
void ThreadWorker::run_concurrently(int n, const std::function<void(int)>& function) {
  TANDEM_REQUIRE(n >= 0, "a negative number of functions");
  if (run_.context().control.is_stopped()) run_.context().control.throw_stopped();
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
      run_.pool().start(jobs[static_cast<std::size_t>(i)]);
    } catch (...) {  // waits for the jobs that run; the rest count as ended
      start_error = std::current_exception();
      run_.context().control.stop();
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

// The jobs of one run_in_turn. A thread runs them one after the other; when one blocks, another thread continues with
// the next.
class Turns {
 public:
  Turns(Run& run, Worker& worker, int n, const std::function<void(int)>& function)
      : run_(run), caller_(Waiter::of_this_thread()), join_(n), jobs_(static_cast<std::size_t>(n)) {
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
  // The work of a thread that was woken to continue, and how many jobs it has ended.
  struct Carrier {
    Job job;
    int done = 0;
  };

  // Runs jobs from `first` until one has blocked and another thread continues. Returns how many ran here.
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

  // Hands the jobs from `next` to another thread. If there is none, they count as ended and the run stops.
  void hand_over(std::size_t next) {
    carriers_[next] = std::make_unique<Carrier>();
    Carrier& carrier = *carriers_[next];
    carrier.job = {.name = jobs_[next].name,
                   .worker = jobs_[next].worker,
                   .run = [this, &carrier, next] { carrier.done = work_from(next, Waiter::of_this_thread()); },
                   .ended = [this, &carrier] { leave(carrier.done); }};
    try {
      run_.pool().start(carrier.job);
    } catch (...) {
      start_error_ = std::current_exception();
      run_.context().control.stop();
      leave(static_cast<int>(jobs_.size() - next));
    }
  }

  // Notes that `count` jobs have ended. Threads other than the caller's do not touch this object afterwards.
  void leave(int count) {
    Waiter& caller = caller_;
    for (int i = 0; i < count; ++i) join_.leave(caller);
  }

  Run& run_;
  Waiter& caller_;
  Join join_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<Carrier>> carriers_{jobs_.size()};
  std::exception_ptr start_error_;
};

}  // namespace

void ThreadWorker::run_in_turn(int n, const std::function<void(int)>& function) {
  TANDEM_REQUIRE(n >= 0, "a negative number of functions");
  if (run_.context().control.is_stopped()) run_.context().control.throw_stopped();
  if (n > 0) Turns(run_, *this, n, function).run();
}

std::unique_ptr<BackgroundTask> ThreadWorker::start(std::string_view name, std::function<void()> function) {
  RunControl& control = run_.context().control;
  if (control.is_stopped()) control.throw_stopped();
  return std::make_unique<BackgroundJob>(control, run_.pool(), *this,
                                         fmt::format("{} {}", Task::current().name(), name), std::move(function));
}

std::unique_ptr<Monitor> ThreadWorker::make_monitor() {
  return std::make_unique<ThreadMonitor>(run_.context().control);
}

Communicator& ThreadWorker::communicator(std::span<const DeviceId> devices) {
  std::vector<DeviceId> key(devices.begin(), devices.end());
  const std::lock_guard lock(mutex_);
  if (const auto found = communicators_.find(key); found != communicators_.end()) return *found->second;
  auto made = std::make_unique<ThreadCommunicator>(run_.group(devices), index());
  return *communicators_.emplace(std::move(key), std::move(made)).first->second;
}

void ThreadWorker::begin_step(int step) {
  TANDEM_REQUIRE(step >= 0, "a negative step");
  TANDEM_REQUIRE(state_.step() == kNoStep, "a step begins within a step");
  if (run_.context().faults) run_.context().faults->begin_step(index(), step, now());
  state_.set_step(step);
  step_start_ns_ = now();
}

void ThreadWorker::end_step() {
  TANDEM_REQUIRE(state_.step() != kNoStep, "a step ends that has not begun");
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

void ThreadWorker::finish(Timeline& timeline) {
  std::vector<Record>& records = timeline.records;
  for (const auto& device : owned_devices_) {
    device->finish(records);
    TimelineDevice& shown = timeline.devices.at(static_cast<std::size_t>(device->index()));
    const MemoryUse& use = device->memory_use();
    shown.allocations = use.allocations.load();
    shown.allocated_bytes = use.allocated_bytes.load();
    shown.memory_peak_bytes = use.peak_bytes.load();
  }
  records.insert(records.end(), std::move_iterator(steps_.begin()), std::move_iterator(steps_.end()));
}

}  // namespace tandem::threads
