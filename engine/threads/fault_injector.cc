#include "engine/threads/fault_injector.h"

namespace tandem::threads {

void FaultInjector::begin_step(int worker, int step, Nanoseconds now) {
  Nanoseconds none = kNotBegun;
  begin_.compare_exchange_strong(none, now);
  for (const LostWorker& lost : faults_.lost_workers) {
    if (lost.step && lost.worker == worker && *lost.step == step) lose(lost);
  }
  check(worker, now);
}

void FaultInjector::check(int worker, Nanoseconds now) const {
  for (const LostWorker& lost : faults_.lost_workers) {
    if (!lost.step && lost.worker == worker && lost.at_s <= seconds_of(now)) lose(lost);
  }
}

double FaultInjector::slowdown_of(int worker, std::optional<int> device, Nanoseconds now, int step) const {
  const double date_s = seconds_of(now);
  return date_s < 0 ? 1 : tandem::slowdown_of(faults_, worker, device, date_s, step);
}

double FaultInjector::seconds_of(Nanoseconds now) const {
  const Nanoseconds begin = begin_.load();
  return begin == kNotBegun ? -1 : static_cast<double>(now - begin) * 1e-9;
}

void FaultInjector::lose(const LostWorker& lost) const {
  if (kill_) kill_();
  std::rethrow_exception(lost_worker_error(lost, workers_[static_cast<std::size_t>(lost.worker)]));
}

}  // namespace tandem::threads
