// The time limit of one call between devices: when the first of those who wait in it has waited long enough, the run
// fails. A pending deadline is something under way, so simulated time gets there even when every task waits for the
// call, and no deadlock is declared before.
//
// In the kernel.
#pragma once

#include <functional>

#include "engine/sim/simulation.h"

namespace tandem::sim {

class CallDeadline {
 public:
  CallDeadline() = default;
  ~CallDeadline() { call_off(); }
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;

  // Somebody is ready for the call at `ready_s` and waits in it for `timeout_s` at most. The `fail` of the earliest
  // such date is called then.
  void add(Simulation& simulation, double ready_s, double timeout_s, std::function<void()> fail);
  void call_off();  // the call is complete

 private:
  Simulation* simulation_ = nullptr;
  Simulation::Alarm alarm_ = nullptr;
  double date_s_ = 0;
};

}  // namespace tandem::sim
