#include "engine/sim/collectives/call_deadline.h"

#include <utility>

namespace tandem::sim {

void CallDeadline::add(Simulation& simulation, double ready_s, double timeout_s, std::function<void()> fail) {
  const double date_s = ready_s + timeout_s;
  if (alarm_ != nullptr && date_s_ <= date_s) return;
  call_off();
  simulation_ = &simulation;
  date_s_ = date_s;
  alarm_ = simulation.set_alarm(date_s, [this, fail = std::move(fail)] {
    alarm_ = nullptr;
    fail();
  });
}

void CallDeadline::call_off() {
  if (alarm_ != nullptr) simulation_->call_off(std::exchange(alarm_, nullptr));
}

}  // namespace tandem::sim
