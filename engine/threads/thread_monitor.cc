#include "engine/threads/thread_monitor.h"

#include <thread>

#include "engine/threads/run_control.h"

namespace tandem::threads {

class ThreadMonitor::Unlocked final : public Wait {
 public:
  explicit Unlocked(const ThreadMonitor& monitor) : monitor_(monitor) {}
  bool is_over() const override { return !monitor_.is_locked_.load(); }
  std::string text() const override { return "the lock of a monitor"; }

 private:
  const ThreadMonitor& monitor_;
};

class ThreadMonitor::Notified final : public Wait {
 public:
  Notified(const ThreadMonitor& monitor, std::string_view what)
      : monitor_(monitor), what_(what), seen_(monitor.notifications_.load()) {}
  bool is_over() const override { return monitor_.notifications_.load() != seen_; }
  std::string text() const override { return std::string(what_); }

 private:
  const ThreadMonitor& monitor_;
  const std::string_view what_;
  const std::uint64_t seen_;
};

bool ThreadMonitor::try_lock() {
  const std::lock_guard lock(mutex_);
  if (is_locked_.load()) return false;
  is_locked_.store(true);
  return true;
}

void ThreadMonitor::lock() {
  while (!try_lock()) {
    if (!Waiter::of_this_thread().wait(Unlocked(*this), &lockers_, Stoppable::yes)) control_.throw_stopped();
  }
}

void ThreadMonitor::unlock() {
  const std::lock_guard lock(mutex_);
  is_locked_.store(false);
  lockers_.wake(1);
}

// Throws with the lock held, as the caller's guard expects. In a stopped run nobody holds the lock for long.
void ThreadMonitor::wait(std::string_view what) {
  Waiter& waiter = Waiter::of_this_thread();
  const Notified notified(*this, what);
  unlock();
  const bool goes_on = !control_.is_stopped() && waiter.wait(notified, &waiters_, Stoppable::yes);
  while (!try_lock()) waiter.wait(Unlocked(*this), &lockers_, Stoppable::no);
  if (!goes_on) control_.throw_stopped();
}

void ThreadMonitor::notify_all_from_outside() {
  while (!try_lock()) std::this_thread::yield();
  notify_all();
  unlock();
}

void ThreadMonitor::notify_all() {
  notifications_.fetch_add(1);
  waiters_.wake_all();
}

}  // namespace tandem::threads
