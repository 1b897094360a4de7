// A mutex with one condition between tasks of a simulation. Waiting costs no simulated time.
#pragma once

#include "engine/sim/scheduler.h"

namespace tandem::sim {

class SimMonitor : public Monitor {
 public:
  explicit SimMonitor(Scheduler& scheduler) : scheduler_(scheduler) {}
  void lock() override;
  void unlock() override;
  void wait(std::string_view what) override;
  void notify_all() override;

 private:
  Scheduler& scheduler_;
  bool is_locked_ = false;
  std::uint64_t notifications_ = 0;
  WaitList lockers_;
  WaitList waiters_;
};

}  // namespace tandem::sim
