// The tasks of a simulated run: programs and replica functions as actors, how they wait, and what happens when
// one fails or all of them wait for each other.
//
// A task that must stop (because of a deadlock or another task's exception) learns it from the exception that
// its next wait throws, so stacks unwind as they would on real threads.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sim/seeded_schedule.h"
#include "engine/sim/simulation.h"
#include "engine/task.h"

namespace tandem::sim {

// Thrown in tasks of a run that another task's exception has ended. No std::exception: programs do not handle it.
struct RunStopped {};

class SimTask : public Task {
 public:
  SimTask(std::string name, Worker* worker)
      : Task(std::move(name), worker), wake_(simgrid_compat::s4u::Semaphore::create(0)) {}

  // The task of the running actor. TANDEM_CHECKs that there is one.
  static SimTask& current();

  double debt_s = 0;  // host time for issuing work that this task has yet to spend

 private:
  friend class Scheduler;
  simgrid_compat::s4u::SemaphorePtr wake_;
  bool is_waiting_ = false;
  bool is_interruptible_ = true;
  const std::function<std::string()>* waits_for_ = nullptr;  // while it waits
};

// Those who wait for one thing. A task that a failure has woken stays listed, which does no harm: it waits no more.
using WaitList = std::vector<SimTask*>;

class Scheduler {
 public:
  // `schedule` chooses who runs first; null: the order in which tasks become ready.
  Scheduler(Simulation& simulation, SeededSchedule* schedule);

  // Describes collectives and streams that wait, one line each, for the message of a deadlock.
  void describe_pending_work(std::function<std::vector<std::string>()> describe) { describe_ = std::move(describe); }

  // Starts a task as an actor on the node's host; `ended` is called in it with what it threw, or null.
  void start(std::unique_ptr<SimTask> task, NodeIndex node, std::function<void()> body,
             std::function<void(std::exception_ptr)> ended);

  using Condition = std::function<bool()>;
  using Description = std::function<std::string()>;
  // Blocks the current task until `done`; whoever makes it true calls wake_all(list). `waits_for` completes
  // "<task> waits for ...". Throws when the run has failed.
  void wait(WaitList& list, const Condition& done, const Description& waits_for);
  // The same, but comes back only when done, even in a failed run: for tasks whose stack others refer to.
  void wait_uninterrupted(WaitList& list, const Condition& done, const Description& waits_for);
  void wake_all(WaitList& list);

  // Where the current task may be overtaken by any other one that could run now. Takes no time; does nothing without a
  // schedule.
  void yield();

  void pay_debt();
  void sleep(double seconds);

  // Ends the run with this exception; the first one counts. Waiting tasks are given it where it is about all of them
  // (a deadlock, a failed op), and are merely stopped where it is another task's own.
  enum class Concerns : std::uint8_t { one_task, all_tasks };
  void fail(std::exception_ptr error, Concerns concerns = Concerns::one_task);
  bool has_failed() const { return error_ != nullptr; }
  std::exception_ptr error() const { return error_; }
  void throw_if_failed() const;
  // An exception that ended a task has reached the one that waits for it, so it explains no later deadlock.
  void forget_cause() { cause_ = nullptr; }

  // Called when nothing is under way: fails the run when tasks or streams still wait.
  void check_deadlock();

 private:
  void suspend(WaitList& list, const Condition& done, const Description& waits_for, bool is_interruptible);
  void run_body(SimTask& task, const std::function<void()>& body, const std::function<void(std::exception_ptr)>& ended);
  void wake(SimTask& task);
  void let_one_run();
  std::string deadlock_message() const;

  Simulation& simulation_;
  SeededSchedule* schedule_;
  std::function<std::vector<std::string>()> describe_;
  std::vector<std::unique_ptr<SimTask>> scheduler_;  // of the whole run, in the order they started
  int live_ = 0;
  int runnable_ = 0;                // those that do not wait
  std::vector<SimTask*> yielding_;  // the runnable ones that have come to yield()
  std::exception_ptr cause_;        // what the last task to end by an exception threw, until another task has seen it
  std::exception_ptr error_;
  Concerns concerns_ = Concerns::one_task;
};

// Runs `body`; an exception ends the run instead of leaving a callback.
template <typename Body>
void guarded(Scheduler& tasks, Body&& body) {
  try {
    body();
  } catch (...) {
    tasks.fail(std::current_exception(), Scheduler::Concerns::all_tasks);
  }
}

}  // namespace tandem::sim
