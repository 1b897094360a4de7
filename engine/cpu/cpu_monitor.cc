#include "engine/cpu/cpu_monitor.h"

namespace tandem::cpu {

class CpuMonitor::Unlocked final : public Wait {
 public:
  explicit Unlocked(const CpuMonitor& monitor) : monitor_(monitor) {}
  bool is_over() const override { return !monitor_.is_locked_.load(); }
  std::string text() const override { return "the lock of a monitor"; }

 private:
  const CpuMonitor& monitor_;
};

class CpuMonitor::Notified final : public Wait {
 public:
  Notified(const CpuMonitor& monitor, std::string_view what)
      : monitor_(monitor), what_(what), seen_(monitor.notifications_.load()) {}
  bool is_over() const override { return monitor_.notifications_.load() != seen_; }
  std::string text() const override { return std::string(what_); }

 private:
  const CpuMonitor& monitor_;
  const std::string_view what_;
  const std::uint64_t seen_;
};

bool CpuMonitor::try_lock() {
  const std::lock_guard lock(mutex_);
  if (is_locked_.load()) return false;
  is_locked_.store(true);
  return true;
}

void CpuMonitor::lock() {
  while (!try_lock()) {
    if (!Waiter::of_this_thread().wait(Unlocked(*this), &lockers_, Stoppable::yes)) control_.throw_stopped();
  }
}

void CpuMonitor::unlock() {
  const std::lock_guard lock(mutex_);
  is_locked_.store(false);
  lockers_.wake(1);
}

// Throws with the lock held, as the caller's guard expects. Nobody keeps it for long in a run that was stopped.
void CpuMonitor::wait(std::string_view what) {
  Waiter& waiter = Waiter::of_this_thread();
  const Notified notified(*this, what);
  unlock();
  const bool goes_on = !control_.is_stopped() && waiter.wait(notified, &waiters_, Stoppable::yes);
  while (!try_lock()) waiter.wait(Unlocked(*this), &lockers_, Stoppable::no);
  if (!goes_on) control_.throw_stopped();
}

void CpuMonitor::notify_all() {
  notifications_.fetch_add(1);
  waiters_.wake_all();
}

}  // namespace tandem::cpu
