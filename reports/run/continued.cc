#include "reports/run/continued.h"

#include <algorithm>

namespace tandem {
namespace {

class Continuation {
 public:
  explicit Continuation(int periods) : periods_(periods) {}

  template <typename Number>
  void extend(Number& simulated, Number shorter) const {
    simulated += (simulated - shorter) * static_cast<Number>(periods_);
  }

  void extend(StepTime& simulated, const StepTime& shorter) const {
    // How far steps deviate from one another remains: all of them grow by the same.
    for (const auto time : {&StepTime::mean, &StepTime::median, &StepTime::min, &StepTime::p95}) {
      extend(simulated.*time, shorter.*time);
    }
    if (!simulated.long_steps || !shorter.long_steps) return;
    extend(simulated.long_steps->time, shorter.long_steps->time);
    extend(simulated.long_steps->others, shorter.long_steps->others);
  }

  void extend(PerStep& simulated, const PerStep& shorter) const {
    for (const StepPart& figure : step_figures()) extend(simulated.*figure.time, shorter.*figure.time);
  }

  void extend(CriticalPath& simulated, const CriticalPath& shorter) const {
    for (const auto time : {&CriticalPath::compute, &CriticalPath::update, &CriticalPath::input,
                            &CriticalPath::communication, &CriticalPath::other, &CriticalPath::idle}) {
      extend(simulated.*time, shorter.*time);
    }
  }

  void extend(RankWaiting& simulated, const RankWaiting& shorter) const {
    for (const auto time : {&RankWaiting::waiting, &RankWaiting::transfer, &RankWaiting::caused}) {
      extend(simulated.*time, shorter.*time);
    }
  }

  void extend(CollectiveSummary& simulated, const CollectiveSummary& shorter) const {
    const int calls = simulated.calls_per_step, fewer = shorter.calls_per_step;
    extend(simulated.calls_per_step, fewer);
    const auto extend_mean = [&](Nanoseconds& mean, Nanoseconds of_fewer) {
      if (simulated.calls_per_step == 0) return;
      Nanoseconds sum = mean * calls;
      extend(sum, of_fewer * fewer);
      mean = sum / simulated.calls_per_step;
    };
    extend_mean(simulated.waiting_ns, shorter.waiting_ns);
    for (CallShare& share : simulated.ranks) {
      const auto same = std::ranges::find(shorter.ranks, share.rank, &CallShare::rank);
      if (same == shorter.ranks.end()) continue;
      extend_mean(share.waiting, same->waiting);
      extend_mean(share.transfer, same->transfer);
    }
  }

 private:
  int periods_;
};

bool is_same_call(const CollectiveSummary& one, const CollectiveSummary& other) {
  return one.operation == other.operation && one.bytes == other.bytes && one.devices == other.devices;
}

}  // namespace

Summary continued(const Summary& simulated, const Summary& shorter, int periods) {
  const Continuation continuation(periods);
  Summary whole = simulated;
  continuation.extend(whole.step_time, shorter.step_time);
  continuation.extend(whole.per_step, shorter.per_step);
  if (whole.other_devices && shorter.other_devices) {
    continuation.extend(whole.other_devices->per_step, shorter.other_devices->per_step);
  }
  for (CollectiveSummary& collective : whole.collectives) {
    const auto same = std::ranges::find_if(
        shorter.collectives, [&](const CollectiveSummary& other) { return is_same_call(collective, other); });
    if (same != shorter.collectives.end()) continuation.extend(collective, *same);
  }
  for (std::size_t i = 0; i < std::min(whole.workers.size(), shorter.workers.size()); ++i) {
    continuation.extend(whole.workers[i].step_time, shorter.workers[i].step_time);
    continuation.extend(whole.workers[i].per_step, shorter.workers[i].per_step);
  }
  for (std::size_t i = 0; i < std::min(whole.ranks.size(), shorter.ranks.size()); ++i) {
    continuation.extend(whole.ranks[i], shorter.ranks[i]);
  }
  if (whole.critical_path && shorter.critical_path) {
    continuation.extend(*whole.critical_path, *shorter.critical_path);
  }
  return whole;
}

}  // namespace tandem
