#include "engine/sim/sim_monitor.h"

namespace tandem::sim {

// Tasks run one at a time and take turns only where they wait or yield, so plain fields are enough.

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
    scheduler_.pay_debt();  // without the lock, so that others may take it while this task's launches take time
    scheduler_.wait(
        waiters_, [&] { return notifications_ != seen; }, [what] { return std::string(what); });
  } catch (...) {
    relock();  // because the caller's lock guard will unlock
    throw;
  }
  relock();
}

void SimMonitor::notify_all() {
  ++notifications_;
  scheduler_.wake_all(waiters_);
}

}  // namespace tandem::sim
