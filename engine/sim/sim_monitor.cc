#include "engine/sim/sim_monitor.h"

namespace tandem::sim {

// Scheduler run one at a time and change over only inside waits and where they give way, so plain fields are enough.

void SimMonitor::lock() {
  scheduler_.yield();
  if (is_locked_)
    scheduler_.wait(
        lockers_, [this] { return !is_locked_; }, [] { return std::string("a monitor"); });
  is_locked_ = true;
}

void SimMonitor::unlock() {
  is_locked_ = false;
  scheduler_.wake_all(lockers_);
}

void SimMonitor::wait(std::string_view what) {
  const std::uint64_t seen = notifications_;
  unlock();
  const auto relock = [this] {
    scheduler_.wait_uninterrupted(
        lockers_, [this] { return !is_locked_; }, [] { return std::string("a monitor"); });
    is_locked_ = true;
  };
  try {
    scheduler_.pay_debt();  // the time of the task's own launches, in which others may have the lock
    scheduler_.wait(
        waiters_, [&] { return notifications_ != seen; }, [what] { return std::string(what); });
  } catch (...) {
    relock();  // the caller's lock guard gives it back
    throw;
  }
  relock();
}

void SimMonitor::notify_all() {
  ++notifications_;
  scheduler_.wake_all(waiters_);
}

}  // namespace tandem::sim
