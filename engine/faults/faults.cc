#include "engine/faults/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topologies/base/error.h"

namespace tandem {
namespace {

void check_worker_of_fault(int worker, std::span<const NamedWorker> workers) {
  if (worker >= 0 && static_cast<std::size_t>(worker) < workers.size()) return;
  throw UsageError(fmt::format("a fault is of worker {}, and the workers are 0 to {}", worker, workers.size() - 1));
}

void check_factor(double factor) {
  if (factor > 0 && std::isfinite(factor)) return;
  throw UsageError(fmt::format("a fault's factor is {}, must be greater than 0", factor));
}

void check_period(const FaultPeriod& period) {
  if (period.first_step ? *period.first_step <= period.last_step : period.from_s < period.to_s) return;
  throw UsageError("a fault ends before it begins");
}

}  // namespace

bool Faults::survives_losses() const {
  return goes_on_without_lost ||
         std::any_of(lost_workers.begin(), lost_workers.end(), [](const LostWorker& lost) { return !lost.ends_run; });
}

double slowdown_of(const Faults& faults, int worker, std::optional<int> device, double date_s, int step) {
  double factor = 1;
  for (const SlowDevices& slow : faults.slow_devices) {
    const bool is_its_own = slow.worker == worker && (!slow.device || slow.device == device);
    if (is_its_own && slow.when.contains(date_s, step)) factor *= slow.factor;
  }
  return factor;
}

void check_faults(const Faults& faults, std::span<const NamedWorker> workers, std::size_t links) {
  for (const SlowDevices& slow : faults.slow_devices) {
    check_worker_of_fault(slow.worker, workers);
    const auto& [name, devices] = workers[static_cast<std::size_t>(slow.worker)];
    if (slow.device && (*slow.device < 0 || *slow.device >= devices)) {
      throw UsageError(fmt::format("a fault is of device {} of {}, which has {}", *slow.device, name, devices));
    }
    check_factor(slow.factor);
    check_period(slow.when);
  }
  for (const SlowLinks& slow : faults.slow_links) {
    for (const LinkIndex link : slow.links) {
      if (link >= links) throw UsageError(fmt::format("a fault is of link {}, and there are {}", link, links));
    }
    check_factor(slow.factor);
    check_period(slow.when);
  }
  for (const Jitter& jitter : faults.jitter) {
    if (jitter.variation > 0 && std::isfinite(jitter.variation)) continue;
    throw UsageError(fmt::format("a jitter's variation is {}, must be greater than 0", jitter.variation));
  }
  for (const LostWorker& lost : faults.lost_workers) {
    check_worker_of_fault(lost.worker, workers);
    if (lost.call && *lost.call < 0)
      throw UsageError(fmt::format("a worker is lost before call {}, must be 0 or more", *lost.call));
  }
}

std::exception_ptr lost_worker_error(const LostWorker& lost, std::string_view name) {
  const std::string moment = lost.step   ? fmt::format("before step {}", *lost.step)
                             : lost.call ? fmt::format("before call {} of its devices", *lost.call)
                                         : fmt::format("{:g} s into the run", lost.at_s);
  return std::make_exception_ptr(
      UnavailableError(fmt::format("{} was lost {}, as the faults of this run say", name, moment)));
}

}  // namespace tandem
