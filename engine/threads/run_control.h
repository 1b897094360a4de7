// What the threads of one run share: who they are, how many want a core, and whether the run goes on.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "engine/threads/waiter.h"

namespace tandem::threads {

class RunControl {
 public:
  RunControl();

  void add(Waiter& waiter);
  void remove(Waiter& waiter);
  // Calls function(waiter) for every waiter; none is added or removed meanwhile.
  template <typename Function>
  void for_each_waiter(Function&& function) const {
    const std::lock_guard lock(mutex_);
    for (Waiter* waiter : waiters_) function(*waiter);
  }

  // Ends the run: every stoppable wait returns. A message says that the run ends in a deadlock. Only the first call
  // counts.
  void stop(std::string deadlock_message = "");
  // The same; the waits throw this error, since all tasks are to know of it.
  void stop_for(std::exception_ptr error);
  bool is_stopped() const { return is_stopped_.load(); }
  std::string deadlock_message() const;  // empty when stop() was given none
  [[noreturn]] void throw_stopped() const;

  // Waits on the calling task's thread. Throws when the run was stopped before or is stopped meanwhile.
  void wait_as_task(const Wait& wait, WaitList* list);

  Cores& cores() { return cores_; }
  // Whether a thread that spins keeps another one from running.
  bool is_crowded() const {
    return cores_.are_limited() ? cores_.has_line()
                                : active_threads_.load(std::memory_order_relaxed) > hardware_threads_;
  }
  std::atomic<int>& active_threads() { return active_threads_; }
  int hardware_threads() const { return hardware_threads_; }
  std::atomic<int>& waking_threads() { return waking_threads_; }  // active, but still without a core
  // Active threads last seen on this core: a hint only, since threads move without notice.
  std::atomic<int>& active_threads_on(int cpu) { return active_on_cpu_[static_cast<std::size_t>(cpu) % kCpus]; }

 private:
  mutable std::mutex mutex_;  // guards the next three
  std::vector<Waiter*> waiters_;
  std::string deadlock_message_;
  std::exception_ptr error_of_all_{};
  std::atomic<bool> is_stopped_{false};
  Cores cores_;
  std::atomic<int> active_threads_{0};  // threads that run or are about to
  std::atomic<int> waking_threads_{0};
  static constexpr std::size_t kCpus = 256;
  std::array<std::atomic<int>, kCpus> active_on_cpu_{};
  const int hardware_threads_;
};

}  // namespace tandem::threads
