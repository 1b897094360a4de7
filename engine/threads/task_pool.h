// The threads that tasks run on, kept for the whole run: replica functions of every step are handed to threads that
// are there already.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/threads/waiter.h"

namespace tandem::threads {

// What a thread of the pool is to do. Neither function throws.
struct Job {
  std::string name;  // of the task
  Worker* worker = nullptr;
  std::function<void()> run;
  // Called when the thread is free again, so that the owner's next job finds it. The last use of the job.
  std::function<void()> ended;
};

// Runs a job as a task of its own on the calling thread, which returns to its own task afterwards.
void run_as_task(Waiter& waiter, const Job& job);

class TaskPool {
 public:
  explicit TaskPool(RunControl& control) : control_(control) {}
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  void start(Job& job);  // on a thread that waits for work, or a new one. Throws RunError when there is none to have

 private:
  struct Thread {
    explicit Thread(RunControl& control) : waiter(control, "a thread without a task") {}
    Waiter waiter;
    std::atomic<Job*> job{nullptr};
    std::atomic<bool> is_ending{false};
    std::thread thread;
  };
  class NoJob;
  void serve(Thread& thread);

  RunControl& control_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> free_;
};

}  // namespace tandem::threads
