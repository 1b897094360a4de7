// The threads that tasks run on. They live for the whole run, so that no step has to start threads for its replica
// functions.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/threads/run_control.h"

namespace tandem::threads {

// Tasks that were started with Tasks::start(), and those that run functions for one of them, are a family: what one of
// them issues, another one may wait for. 0: the programs of workers, and all other threads.
int family_of_this_thread();
int new_family();

// A task for a thread of the pool. Neither function throws.
struct Job {
  std::string name;  // of the task
  Worker* worker = nullptr;
  std::function<void()> run;
  // Called after the thread is free again, so that the owner's next job can use it. The pool does not touch the job
  // afterwards.
  std::function<void()> ended;
  int family = family_of_this_thread();
};

// Runs a job as a task on the calling thread, which then returns to its former task.
void run_as_task(Waiter& waiter, const Job& job);

class TaskPool {
 public:
  explicit TaskPool(RunControl& control) : control_(control) {}
  ~TaskPool();  // NOLINT(bugprone-exception-escape): without a thread to wait for, the end
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Starts the job on an idle thread or a new one. Throws RunError when the system has no thread.
  void start(Job& job);

 private:
  struct Thread {
    explicit Thread(RunControl& control) : waiter(control, "a thread without a task", true) {}
    Waiter waiter;
    std::atomic<Job*> job{nullptr};
    std::atomic<bool> is_ending{false};
    std::thread thread;
  };
  class NoJob;
  void serve(Thread& thread);

  RunControl& control_;
  std::mutex mutex_;  // guards the rest
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> free_;
};

}  // namespace tandem::threads
