#include "engine/threads/task_pool.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "topologies/base/error.h"

namespace tandem::threads {
namespace {

thread_local int family = 0;

}  // namespace

int family_of_this_thread() {
  return family;
}

int new_family() {
  static std::atomic<int> families{0};
  return ++families;
}

// A thread that has been given a job is no longer idle, even before it wakes.
class TaskPool::NoJob final : public Wait {
 public:
  explicit NoJob(const Thread& thread) : thread_(thread) {}
  bool is_over() const override { return thread_.job.load() != nullptr || thread_.is_ending.load(); }
  std::string text() const override { return "a task"; }
  bool is_idle() const override { return true; }

 private:
  const Thread& thread_;
};

void run_as_task(Waiter& waiter, const Job& job) {
  Task task(job.name, job.worker);
  Task* outer = waiter.set_task(&task);
  const int outer_family = std::exchange(family, job.family);
  Task::set_current_of_this_thread(&task);
  job.run();
  family = outer_family;
  Task::set_current_of_this_thread(outer);
  waiter.set_task(outer);
}

TaskPool::~TaskPool() {  // NOLINT(bugprone-exception-escape)
  for (const auto& thread : threads_) {
    thread->is_ending.store(true);
    thread->waiter.unpark();
  }
  for (const auto& thread : threads_) {
    if (thread->thread.joinable()) thread->thread.join();
  }
}

void TaskPool::start(Job& job) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    auto thread = std::make_unique<Thread>(control_);
    try {
      thread->thread = std::thread([this, &served = *thread] { serve(served); });
    } catch (const std::system_error& error) {
      throw RunError(fmt::format("{}: no thread for it: {}", job.name, error.what()));
    }
    free_.push_back(thread.get());
    threads_.push_back(std::move(thread));
  }
  Thread* thread = free_.back();
  free_.pop_back();
  thread->job.store(&job);
  thread->waiter.unpark();
}

void TaskPool::serve(Thread& thread) {
  thread.waiter.use_on_this_thread();
  for (;;) {
    thread.waiter.wait(NoJob(thread), nullptr, Stoppable::no);
    Job* job = thread.job.exchange(nullptr);
    if (job == nullptr) break;
    run_as_task(thread.waiter, *job);
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(&thread);
    }
    job->ended();
  }
  thread.waiter.leave_this_thread();
}

}  // namespace tandem::threads
