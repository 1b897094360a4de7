#include "engine/sim/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sim/sim_device.h"
#include "engine/sim/sim_stream.h"
#include "topologies/base/error.h"

namespace tandem::sim {
namespace {

Task* current_task() {
  return static_cast<SimTask*>(simgrid_compat::current_actor_data());
}

// Enough lines to see the pattern, few enough to read.
std::string indented(const std::vector<std::string>& lines) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMost) text += "\n  and " + std::to_string(lines.size() - kMost) + " more";
  return text;
}

}  // namespace

SimTask& SimTask::current() {
  auto* task = static_cast<SimTask*>(simgrid_compat::current_actor_data());
  TANDEM_REQUIRE(task != nullptr, "a device or worker of a simulation used outside its run");
  return *task;
}

Scheduler::Scheduler(Simulation& simulation, Cores& cores, SeededSchedule* schedule, PendingWork pending_work)
    : simulation_(simulation), cores_(cores), schedule_(schedule), pending_work_(std::move(pending_work)) {
  Task::set_provider_of_this_thread(&current_task);
}

void Scheduler::start(std::unique_ptr<SimTask> task, NodeIndex node, std::function<void()> body,
                      std::function<void(std::exception_ptr)> ended) {
  SimTask& started = *task;
  tasks_.push_back(std::move(task));
  ++live_;
  ++runnable_;
  simgrid_compat::start_actor(started.name(), simulation_.platform().host(node), &started,
                              [this, &started, body = std::move(body), ended = std::move(ended)] {
                                Task::set_provider_of_this_thread(&current_task);  // actors may be threads
                                run_body(started, body, ended);
                              });
}

void Scheduler::run_body(SimTask& task, const std::function<void()>& body,
                         const std::function<void(std::exception_ptr)>& ended) {
  std::exception_ptr thrown;
  begin_turn(&task);
  try {
    yield();
    if (task.takes_thread_of != nullptr) begin_thread(*task.takes_thread_of);
    body();
    if (task.debt_s > 0) pay_debt();
  } catch (const simgrid_compat::ActorKilled&) {
    throw;
  } catch (...) {
    thrown = std::current_exception();
  }
  in_kernel([&] {
    if (thrown && !cause_) cause_ = thrown;
    ended(thrown);
    if (task.owns_thread) cores_.put_back(*task.thread);
    --live_;
    --runnable_;
    let_one_run();
    if (!simulation_.is_busy()) check_deadlock();
  });
  begin_turn(nullptr);
}

void Scheduler::begin_turn(const SimTask* task) {
  task_in_turn.store(task, std::memory_order_relaxed);
  if (watch_ != nullptr) watch_->turn();
}

void Scheduler::wait(WaitList& list, const Condition& done, const Text& waits_for) {
  throw_if_failed();
  while (!done()) {
    suspend(list, done, waits_for, true);
    throw_if_failed();
  }
}

void Scheduler::wait_uninterrupted(WaitList& list, const Condition& done, const Text& waits_for) {
  while (!done()) suspend(list, done, waits_for, false);
}

void Scheduler::suspend(WaitList& list, const Condition& done, const Text& waits_for, bool is_interruptible) {
  SimTask& task = SimTask::current();
  if (task.before_blocking && !task.is_spending_) std::exchange(task.before_blocking, {})();
  bool suspended = false;
  task.waits_for_ = &waits_for;
  in_kernel([&] {
    // Other tasks may have run since the caller looked.
    if (done() || (is_interruptible && has_failed())) return;
    suspended = true;
    task.is_waiting_ = true;
    task.is_interruptible_ = is_interruptible;
    list.push_back(&task);
    --runnable_;
    if (task.thread != nullptr && !task.has_lent_thread && !task.is_spending_) cores_.block(*task.thread);
    let_one_run();
    if (!simulation_.is_busy()) check_deadlock();
  });
  if (suspended) {
    begin_turn(nullptr);
    task.wake_->acquire();
    begin_turn(&task);
  }
  task.waits_for_ = nullptr;
  if (suspended) yield();
}

void Scheduler::yield() {
  if (schedule_ == nullptr || runnable_ <= 1) return;
  SimTask& task = SimTask::current();
  in_kernel([&] {
    yielding_.push_back(&task);
    let_one_run();
  });
  begin_turn(nullptr);
  task.wake_->acquire();
  begin_turn(&task);
}

// Chooses only when every task that could run has reached yield(), so that none is left out of the choice.
void Scheduler::let_one_run() {
  if (yielding_.empty() || yielding_.size() < static_cast<std::size_t>(runnable_)) return;
  schedule_->take_one(yielding_)->wake_->release();
}

void Scheduler::wake(SimTask& task, const Cores::Node* woken_by) {
  if (!task.is_waiting_) return;
  task.is_waiting_ = false;
  ++runnable_;
  const auto go_on = [&task] { task.wake_->release(); };
  if (task.thread == nullptr || task.is_spending_) return go_on();
  cores_.run(*task.thread, woken_by, go_on);
}

void Scheduler::wake_all(WaitList& list, const Cores::Node* woken_by) {
  if (list.empty()) return;
  in_kernel([&] {
    for (SimTask* task : std::exchange(list, {})) wake(*task, woken_by);
  });
}

void Scheduler::begin_thread(Cores::Node& node) {
  SimTask& task = SimTask::current();
  in_kernel([&] {
    task.thread = &cores_.take(node);
    task.owns_thread = true;
    cores_.run(*task.thread, nullptr, [&task] { task.wake_->release(); });
  });
  begin_turn(nullptr);
  task.wake_->acquire();
  begin_turn(&task);
}

void Scheduler::pay_debt() {
  sleep(std::exchange(SimTask::current().debt_s, 0));
}

void Scheduler::sleep(double seconds) {
  throw_if_failed();
  if (seconds <= 0) return;
  struct Alarm {
    bool has_rung = false;
    WaitList list;
  };
  auto alarm = std::make_shared<Alarm>();  // shared, because a failed run may leave before it rings
  in_kernel([&] {
    simulation_.at(Simulation::now_s() + seconds, [this, alarm] {
      alarm->has_rung = true;
      wake_all(alarm->list);
    });
  });
  SimTask& task = SimTask::current();
  task.is_spending_ = true;
  wait(
      alarm->list, [&] { return alarm->has_rung; }, [] { return std::string("its own host time"); });
  task.is_spending_ = false;
}

void Scheduler::throw_if_failed() const {
  if (!has_failed()) return;
  if (concerns_ == Concerns::all_tasks) std::rethrow_exception(error_);
  throw RunStopped();
}

void Scheduler::fail(std::exception_ptr error, Concerns concerns) {
  if (has_failed()) return;
  concerns_ = concerns;
  error_ = std::move(error);
  in_kernel([&] {
    for (const auto& task : tasks_) {
      if (task->is_waiting_ && task->is_interruptible_) wake(*task, nullptr);
    }
  });
}

void Scheduler::check_deadlock() {
  if (runnable_ > 0 || has_failed()) return;
  if (live_ == 0 && pending_work_().empty()) return;
  if (cause_) return fail(cause_);
  fail(std::make_exception_ptr(DeadlockError(deadlock_message())), Concerns::all_tasks);
}

std::vector<std::string> Scheduler::lines_of(const std::function<bool(const SimTask&)>& chosen) const {
  std::vector<std::string> lines;
  for (const auto& task : tasks_) {
    if (chosen(*task)) lines.push_back(task->name() + " waits for " + (*task->waits_for_)());
  }
  for (std::string& line : pending_work_()) lines.push_back(std::move(line));
  return lines;
}

std::string Scheduler::deadlock_message() const {
  return "deadlock: every task waits and nothing is under way" +
         indented(lines_of([](const SimTask& task) { return task.is_waiting_; }));
}

void Scheduler::run_watched(double timeout_s) {
  task_in_turn.store(nullptr, std::memory_order_relaxed);  // one of an earlier simulation is gone
  TurnWatch watch(timeout_s, [this] { return text_of_turn(); });
  watch_ = &watch;
  simulation_.on_event([this] { begin_turn(nullptr); });
  const auto forget = [this] {
    simulation_.on_event({});
    watch_ = nullptr;
  };
  try {
    simulation_.run();
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

// Called while the simulation's thread is blocked, so that nothing changes.
std::string Scheduler::text_of_turn() const {
  const auto* task = static_cast<const SimTask*>(task_in_turn.load(std::memory_order_relaxed));
  std::string text = fmt::format("at {} ns of simulated time ", Simulation::now_ns());
  if (task == nullptr) {
    text += "an op of a device blocks the thread: a function of the program that it runs";
  } else {
    text += task->name() + " blocks the thread";
    if (!task->purpose().empty()) text += ", in " + task->purpose().text();
    if (task->last_device != nullptr) {
      text +=
          fmt::format("; the last that it has issued is {} on {}", task->last_issued.text(), task->last_device->name());
    }
  }
  // The one that must go on may be among those that have been woken.
  return text +
         indented(lines_of([task](const SimTask& other) { return &other != task && other.waits_for_ != nullptr; }));
}

}  // namespace tandem::sim
