// What goes wrong in a simulation on purpose, and when (EngineOptions::faults): the slowdown of an op, the rate of a
// link, the variation of times, the loss of a worker.
//
// Its dates are timers of SimGrid beside the simulation's activities: they change rates, and keep nothing alive. A
// simulation in which nothing else is left has ended, or is in a deadlock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/faults/faults.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

// A device, as faults know it.
struct PlaceOfDevice {
  int index = 0;  // among all devices
  int worker = 0;
  std::optional<int> device{};  // its place among the worker's compute devices; empty: it is its host
};

class FaultClock {
 public:
  // What it does to the run, in the kernel.
  struct Calls {
    std::function<bool()> goes_on;                              // whether anything is left to change
    std::function<void(const LostWorker&, bool is_lost)> lose;  // a worker, or (false) it is back
  };
  // The first two must outlive it.
  FaultClock(const Faults& faults, Simulation& simulation, Calls calls);

  // A worker begins a step. Usable from tasks.
  void begin_step(int worker, int step);
  // Somebody gives work to a device of this worker, or has waited for it. Usable from tasks.
  void note_use(int worker);
  bool counts_uses() const { return counts_uses_; }  // else note_use() does nothing

  // By what the time of an op that begins now is multiplied. In the kernel.
  double factor_of_op(const PlaceOfDevice& device, int step);
  // The same for a transfer and for the input of a batch; 1 where they do not vary.
  double factor_of_transfer() { return next_factor(Jitter::On::network, 0); }
  double factor_of_input(int worker) { return next_factor(Jitter::On::input, worker); }

  bool varies(Jitter::On what) const;
  // Whether these links ever have another rate than their own.
  bool changes(const Route& route) const;

 private:
  static std::vector<double> dates_of(const Faults& faults);
  void begin();
  void reach();
  void set_links(int step);
  void lose_by_date();
  void lose(const LostWorker& lost);
  // At a date of the clock, not less than that date because of rounding.
  double seconds_since_begin() const { return Simulation::now_s() - begin_s_ + simgrid_compat::kTimingPrecision; }
  // Draws the next factor of this thing, whose draws are independent of those of others.
  double next_factor(Jitter::On what, int thing);

  const Faults& faults_;
  Simulation& simulation_;
  const Calls calls_;
  const bool counts_uses_;
  std::unordered_map<int, std::int64_t> uses_{};  // so far, by worker
  const std::vector<double> dates_;               // since the beginning, in rising order, at which something changes
  std::unordered_map<int, Faults> slow_of_worker_{};  // its slow devices
  std::size_t next_date_ = 0;
  bool has_begun_ = false;
  double begin_s_ = 0;
  std::set<const LostWorker*> lost_{};                        // by date, so far
  int step_of_links_ = kNoStep;                               // of worker 0
  std::unordered_map<std::uint64_t, std::uint64_t> draws_{};  // so far, by jitter and thing
};

}  // namespace tandem::sim
