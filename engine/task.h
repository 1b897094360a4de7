// A task is one flow of control of strategy code: a worker's program, or one of its replica functions. It is a thread
// in a real engine and an actor in a simulated one. So state of the current flow of control belongs here, not in
// thread_local variables, and tasks wait for each other through a Monitor, never through an operating-system primitive.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/name.h"

namespace tandem {

class Worker;

class Task {
 public:
  explicit Task(std::string name, Worker* worker = nullptr) : name_(std::move(name)), worker_(worker) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Returns the running task. Outside every Engine::run it is the calling thread's own task, without a worker.
  static Task& current();

  const std::string& name() const { return name_; }  // "worker 0", "worker 0 replica 3": deadlock messages use it
  Worker* worker() const { return worker_; }

  // Storage for the layer above, which keeps the current strategy and replica context here. Empty in a new task.
  std::any& context() { return context_; }

  // What its collectives are for (engine/purpose.h); empty where no call of the program is their cause.
  Name purpose() const { return purpose_; }
  void set_purpose(Name purpose) { purpose_ = purpose; }

  // For engines: finds the task of the current actor on a thread that runs a simulation. Returns null outside actors.
  using Provider = Task* (*)();
  static void set_provider_of_this_thread(Provider provider);
  static void set_current_of_this_thread(Task* task);

 private:
  std::string name_;
  Worker* worker_;
  std::any context_;
  Name purpose_;
};

// For engines: thrown by blocking calls of a run that another task's exception has ended. Not derived from
// std::exception, so that programs that handle errors do not handle it.
struct RunStopped {};

// A task that runs beside the one that started it, see Tasks::start. It ends before this object does.
class BackgroundTask {
 public:
  virtual ~BackgroundTask() = default;  // blocks the calling task until the function has returned
};

// A mutex with one condition. BasicLockable: use std::lock_guard<Monitor>.
class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
  // Called with the lock held: releases it, waits for notify_all() and takes it again. May return without cause. `what`
  // completes "<task> waits for ..." in a deadlock message. Throws DeadlockError when the run is deadlocked.
  virtual void wait(std::string_view what) = 0;
  virtual void notify_all() = 0;
};

// How a worker does several things at the same time.
class Tasks {
 public:
  // Calls function(0) ... function(n - 1), each in a task of its own, and returns when all have returned. Rethrows the
  // exception of the lowest index after all have ended. Tasks are named "<caller> replica <i>".
  virtual void run_concurrently(int n, const std::function<void(int)>& function) = 0;
  // The same for functions that advance one at a time anyway: function(i + 1) may start as late as when function(i)
  // first blocks or ends, which saves engines on threads most hand-overs.
  virtual void run_in_turn(int n, const std::function<void(int)>& function) = 0;
  // Starts `function` in a task of its own, named "<caller> <name>", and returns while it runs. The function must not
  // throw, and must end when the result's owner tells it to: the result's destructor waits for it.
  virtual std::unique_ptr<BackgroundTask> start(std::string_view name, std::function<void()> function) = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;

 protected:
  ~Tasks() = default;
};

}  // namespace tandem
