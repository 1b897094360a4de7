// The deadline of a call between devices: the earliest date at which a rank that waits in it has waited too long, and
// the run fails. A pending deadline counts as an activity of the simulation. So simulated time reaches it even if every
// task waits for the call, and no deadlock is declared before.
//
// Called in SimGrid's kernel only (see simulation.h).
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

  // Adds a rank that was ready for the call at `ready_s` and waits in it for at most `timeout_s`. If its deadline is
  // the earliest and passes, `fail` is called.
  void add(Simulation& simulation, double ready_s, double timeout_s, std::function<void()> fail);
  // Ends the wait: the call is complete.
  void call_off();

 private:
  Simulation* simulation_ = nullptr;
  Simulation::Alarm alarm_ = nullptr;
  double date_s_ = 0;
};

}  // namespace tandem::sim
