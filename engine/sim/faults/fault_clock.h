// What goes wrong in a simulation on purpose, and when (EngineOptions::faults): the slowdown of an op, the rate of a
// link, the variation of times, the loss of a worker.
//
// Its dates are timers of SimGrid beside the simulation's activities: they change rates, and keep nothing alive. A
// simulation in which nothing else is left has ended, or is in a deadlock.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/faults/faults.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

class SimDevice;
class SimRun;

class FaultClock {
 public:
  // Both must outlive it.
  FaultClock(SimRun& run, const Faults& faults);

  // A worker begins a step. Usable from tasks.
  void begin_step(int worker, int step);

  // By what the time of an op that begins now is multiplied. In the kernel.
  double factor_of_op(const SimDevice& device, int step);
  // The same for a transfer and for the input of a batch; 1 where they do not vary.
  double factor_of_transfer() { return next_factor(Jitter::On::network, 0); }
  double factor_of_input(int worker) { return next_factor(Jitter::On::input, worker); }

  bool varies(Jitter::On what) const;
  // Whether these links ever have another rate than their own.
  bool changes(const Route& route) const;

 private:
  void begin();
  void reach();
  void set_links(int step);
  void lose_by_date();
  void lose(const LostWorker& lost);
  // At a date of the clock, not less than that date because of rounding.
  double seconds_since_begin() const { return Simulation::now_s() - begin_s_ + simgrid_compat::kTimingPrecision; }
  // Draws the next factor of this thing, whose draws are independent of those of others.
  double next_factor(Jitter::On what, int thing);

  SimRun& run_;
  const Faults& faults_;
  bool has_begun_ = false;
  double begin_s_ = 0;
  std::vector<double> dates_{};  // since the beginning, in rising order, at which something changes
  std::size_t next_date_ = 0;
  std::set<const LostWorker*> lost_{};                        // by date, so far
  int step_of_links_ = kNoStep;                               // of worker 0
  std::unordered_map<std::uint64_t, std::uint64_t> draws_{};  // so far, by jitter and thing
};

}  // namespace tandem::sim
