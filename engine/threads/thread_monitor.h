// The Monitor of engines on threads. Waiting for its lock can end in a DeadlockError as well.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "engine/task.h"
#include "engine/threads/waiter.h"

namespace tandem::threads {

class ThreadMonitor final : public Monitor {
 public:
  explicit ThreadMonitor(RunControl& control) : control_(control) {}

  void lock() override;
  void unlock() override;
  void wait(std::string_view what) override;
  void notify_all() override;
  // The same from a thread that is no task, with the lock held: nobody is between a look and a wait then.
  void notify_all_from_outside();

 private:
  class Unlocked;
  class Notified;
  bool try_lock();

  RunControl& control_;
  std::mutex mutex_;  // guards changes of is_locked_; unlock() does not touch the object after releasing it
  std::atomic<bool> is_locked_{false};
  std::atomic<std::uint64_t> notifications_{0};
  WaitList lockers_, waiters_;
};

}  // namespace tandem::threads
