// What goes wrong on purpose in a run of threads (EngineOptions::faults): devices that hold their ops back, workers
// that are lost.
//
// Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "engine/faults/faults.h"

namespace tandem::threads {

class FaultInjector {
 public:
  // `kill` ends the process that has a lost worker; where it is empty, or returns, the worker ends with
  // lost_worker_error().
  FaultInjector(const Faults& faults, std::vector<WorkerSpec> workers, std::function<void()> kill)
      : faults_(faults), workers_(std::move(workers)), kill_(std::move(kill)) {}

  // A worker begins a step at this moment of the run. Throws if it is lost.
  void begin_step(int worker, int step, Nanoseconds now);
  // Throws if the worker is lost by now, at a date.
  void check(int worker, Nanoseconds now) const;
  // See tandem::slowdown_of().
  double slowdown_of(int worker, std::optional<int> device, Nanoseconds now, int step) const;

 private:
  static constexpr Nanoseconds kNotBegun = -1;
  double seconds_of(Nanoseconds now) const;  // since the first step began; less than 0 before
  void lose(const LostWorker& lost) const;

  const Faults& faults_;
  const std::vector<WorkerSpec> workers_;
  const std::function<void()> kill_;
  std::atomic<Nanoseconds> begin_{kNotBegun};
};

}  // namespace tandem::threads
