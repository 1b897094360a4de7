// The tasks of a simulated run: programs and replica functions as SimGrid actors, how they wait, and what happens when
// one fails or all of them wait for each other.
//
// Actors take turns on one thread. A task runs until it waits, yields or ends:
//
//   state      entered by                                  left by
//   runnable   start(); being woken or chosen              wait(), yield(), the end of its body
//   yielding   yield() in a run with a schedule            being chosen, once no task is merely runnable: the schedule
//                                                          chooses one of those that yield
//   waiting    wait() for a condition that does not hold   wake_all() of its list; a failure of the run
//
// When no task is runnable or yielding and the simulation is idle, nothing can ever wake those that wait: a deadlock.
// A task that must stop (because of a deadlock or another task's exception) is woken, and the exception that its wait
// throws unwinds its stack, as it would on a real thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/sim/base/seeded_schedule.h"
#include "engine/sim/cores.h"
#include "engine/sim/simulation.h"
#include "engine/sim/turn_watch.h"
#include "engine/task.h"

namespace tandem::sim {

class SimDevice;

class SimTask : public Task {
 public:
  SimTask(std::string name, Worker* worker)
      : Task(std::move(name), worker), wake_(simgrid_compat::s4u::Semaphore::create(0)) {}

  // The task of the running actor; there must be one.
  static SimTask& current();

  // Where tasks are threads:
  Cores::Node* takes_thread_of = nullptr;  // takes a thread of this node when it starts
  Cores::Thread* thread = nullptr;         // null: it has a core whenever it wants one
  bool owns_thread = false;                // and puts it back at its end
  bool has_lent_thread = false;            // to a task that it waits for

  double debt_s = 0;   // host time for issuing work that this task has not spent yet
  Name last_issued{};  // what it has issued last, and where
  const SimDevice* last_device = nullptr;
  // Called once, when the task first waits for something else than its own host time. May be empty.
  std::function<void()> before_blocking{};

 private:
  friend class Scheduler;
  simgrid_compat::s4u::SemaphorePtr wake_;
  bool is_waiting_ = false;
  bool is_interruptible_ = true;
  bool is_spending_ = false;                                 // waits for its own host time
  const std::function<std::string()>* waits_for_ = nullptr;  // in wait()
};

// The tasks that wait for the same thing. A task that a failure has woken stays in the list, which is harmless because
// it no longer waits.
using WaitList = std::vector<SimTask*>;

class Scheduler {
 public:
  using Condition = std::function<bool()>;
  using Text = std::function<std::string()>;
  using PendingWork = std::function<std::vector<std::string>()>;

  // `schedule` chooses among the tasks that yield; null: tasks run in the order in which they become runnable.
  // `pending_work` lists the streams that are not idle, one line each: they count as waiting, and the message of a
  // deadlock names them.
  Scheduler(Simulation& simulation, Cores& cores, SeededSchedule* schedule, PendingWork pending_work);

  // Starts a task as an actor on the node's host. Its last act is to call `ended` with what it threw, or null.
  void start(std::unique_ptr<SimTask> task, NodeIndex node, std::function<void()> body,
             std::function<void(std::exception_ptr)> ended);

  // Blocks the current task until `done`; whoever makes that true calls wake_all(list). `waits_for` completes
  // "<task> waits for ...". Throws when the run has failed.
  void wait(WaitList& list, const Condition& done, const Text& waits_for);
  // The same, but returns only when `done`, even in a failed run: for a task whose stack others refer to.
  void wait_uninterrupted(WaitList& list, const Condition& done, const Text& waits_for);
  // `woken_by`: see Cores::run; null where a task wakes them.
  void wake_all(WaitList& list, const Cores::Node* woken_by = nullptr);

  // Lets any other task that could run now go first. Takes no simulated time, and does nothing without a schedule.
  void yield();

  // Spends the current task's debt of host time.
  void pay_debt();
  void sleep(double seconds);
  // Takes a thread of the node for the current task, and waits until it runs.
  void begin_thread(Cores::Node& node);

  // Ends the run with this exception, unless it has failed before. Wakes the tasks that wait: with this exception if it
  // concerns all of them (a deadlock, a failed op), with RunStopped if it is one task's own.
  enum class Concerns : std::uint8_t { one_task, all_tasks };
  void fail(std::exception_ptr error, Concerns concerns = Concerns::one_task);
  bool has_failed() const { return error_ != nullptr; }
  std::exception_ptr error() const { return error_; }
  bool has_live_tasks() const { return live_ > 0; }
  void throw_if_failed() const;
  // Notes that the exception that ended a task has reached the task that waits for it, so it explains no later
  // deadlock.
  void forget_cause() { cause_ = nullptr; }

  // Runs the simulation, and ends the process if a task blocks all others for so long (turn_watch.h).
  void run_watched(double timeout_s);

  // Fails the run if tasks or streams wait and nothing can wake them. Called when the simulation is idle.
  void check_deadlock();

 private:
  void suspend(WaitList& list, const Condition& done, const Text& waits_for, bool is_interruptible);
  void run_body(SimTask& task, const std::function<void()>& body, const std::function<void(std::exception_ptr)>& ended);
  void wake(SimTask& task, const Cores::Node* woken_by);
  void let_one_run();
  void begin_turn(const SimTask* task);
  // Returns what the chosen tasks, which wait or are about to, and the streams wait for.
  std::vector<std::string> lines_of(const std::function<bool(const SimTask&)>& chosen) const;
  std::string deadlock_message() const;
  std::string text_of_turn() const;

  Simulation& simulation_;
  Cores& cores_;
  SeededSchedule* schedule_;
  PendingWork pending_work_;
  std::vector<std::unique_ptr<SimTask>> tasks_;  // all that were ever started, in order
  int live_ = 0;                                 // tasks that have not ended
  int runnable_ = 0;                             // runnable or yielding
  std::vector<SimTask*> yielding_;
  TurnWatch* watch_ = nullptr;  // null: nobody watches
  std::exception_ptr cause_;    // what the last task to fail threw, until another task has seen it
  std::exception_ptr error_;
  Concerns concerns_ = Concerns::one_task;
};

// Runs `body` in a callback; an exception fails the run instead of leaving the callback.
template <typename Body>
void guarded(Scheduler& scheduler, Body&& body) {
  try {
    body();
  } catch (...) {
    scheduler.fail(std::current_exception(), Scheduler::Concerns::all_tasks);
  }
}

}  // namespace tandem::sim
