// The deadline of a call between devices: the earliest date at which one of those that wait in it has waited too long.
// The run fails then. A pending deadline counts as an activity of the simulation, so that simulated time reaches it
// even when every task waits for the call, and no deadlock is declared before.
//
// For the kernel.
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

  // Adds a rank that was ready for the call at `ready_s` and waits in it for at most `timeout_s`. At the deadline, the
  // `fail` that was added with it is called.
  void add(Simulation& simulation, double ready_s, double timeout_s, std::function<void()> fail);
  // Ends the wait: the call is complete.
  void call_off();

 private:
  Simulation* simulation_ = nullptr;
  Simulation::Alarm alarm_ = nullptr;
  double date_s_ = 0;
};

}  // namespace tandem::sim
