#include "scenarios/faults/engine_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/course/course_text.h"
#include "scenarios/faults/fault_schedule.h"
#include "scenarios/faults/fault_settings.h"
#include "scenarios/faults/recovery_policy.h"

namespace tandem {
namespace {

class EngineFaults {
 public:
  explicit EngineFaults(const Job& job) : job_(job), settings_(*job.scenario.faults) {}

  Faults make() {
    faults_.goes_on_without_lost = recovery_policy(job_.scenario) == RecoveryPolicy::continue_;
    faults_.jitter = settings_.jitter;
    for (const SlowFault& slow : settings_.slow) {
      if (!slow.again) add_slow(slow, slow.when);
    }
    add_recurring();
    for (const FailFault& fail : settings_.fail) {
      const int worker = index_of(fail.target);
      if (fail.at_s) add_lost({.worker = worker, .at_s = *fail.at_s});
      if (fail.step) add_lost({.worker = worker, .step = fail.step});
    }
    add_first_failure();
    return std::move(faults_);
  }

 private:
  // Servers follow the workers that train.
  int index_of(const FaultTarget& target) const {
    return target.job == "ps" ? job_.workers + target.task : target.task;
  }

  void add_slow(const SlowFault& slow, const FaultPeriod& when) {
    if (!slow.target.links.empty()) {
      faults_.slow_links.push_back({.links = slow.target.links, .factor = slow.factor, .when = when});
    } else if (slow.target.which == FaultTarget::Which::each) {
      for (int worker = 0; worker < job_.workers; ++worker) add_slow(slow, worker, when);
    } else {
      add_slow(slow, index_of(slow.target), when);
    }
  }
  void add_slow(const SlowFault& slow, int worker, const FaultPeriod& when) {
    faults_.slow_devices.push_back(
        {.worker = worker, .device = slow.target.device, .factor = slow.factor, .when = when});
  }

  // The first worker's losses are in the report, and servers have the variables: nobody goes on without them.
  void add_lost(LostWorker lost) {
    lost.ends_run = !faults_.goes_on_without_lost || lost.worker == 0 || lost.worker >= job_.workers;
    faults_.lost_workers.push_back(lost);
  }

  // The first worker that is lost at random.
  void add_first_failure() {
    FaultSettings random;
    for (const FailFault& fail : settings_.fail) {
      if (fail.mttf_s) random.fail.push_back(fail);
    }
    FaultSchedule schedule(random, job_.workers);
    if (!std::isfinite(schedule.next_date_s())) return;
    const ClusterEvent first = schedule.take();
    FaultTarget target = random.fail[static_cast<std::size_t>(first.fault)].target;
    target.task = first.worker;
    add_lost({.worker = index_of(target), .at_s = first.date_s});
  }

  void add_recurring() {
    FaultSettings recurring;
    for (const SlowFault& slow : settings_.slow) {
      if (slow.again) recurring.slow.push_back(slow);
    }
    FaultSchedule schedule(recurring, job_.workers);
    std::map<std::pair<int, int>, double> begun;
    std::map<int, int> periods;  // by fault
    const auto has_all = [&] {
      return std::ranges::all_of(periods, [&](const auto& one) { return one.second >= kMostPeriods; }) &&
             periods.size() == recurring.slow.size();
    };
    while (std::isfinite(schedule.next_date_s()) && !has_all()) {
      const ClusterEvent event = schedule.take();
      const std::pair key{event.fault, event.worker};
      if (event.kind == ClusterEvent::Kind::slow_begins) {
        begun[key] = event.date_s;
        continue;
      }
      if (++periods[event.fault] > kMostPeriods) continue;
      const SlowFault& slow = recurring.slow[static_cast<std::size_t>(event.fault)];
      const FaultPeriod when{.from_s = begun[key], .to_s = event.date_s};
      if (!slow.target.links.empty()) {
        add_slow(slow, when);
      } else {
        add_slow(slow, event.worker, when);
      }
    }
  }

  const Job& job_;
  const FaultSettings& settings_;
  Faults faults_;
};

std::string period_text(const FaultPeriod& when) {
  if (when.first_step) return fmt::format(" in steps {} to {}", *when.first_step, when.last_step);
  std::string text;
  if (when.from_s > 0) text += " from " + duration_text(when.from_s);
  if (std::isfinite(when.to_s)) text += " to " + duration_text(when.to_s);
  return text;
}

}  // namespace

std::shared_ptr<const Faults> engine_faults(const Job& job) {
  if (!job.scenario.faults) return nullptr;
  Faults faults = EngineFaults(job).make();
  // A simulation loses no process.
  const bool has_effect = !faults.empty() || (faults.survives_losses() && !job.models_machine);
  return !has_effect ? nullptr : std::make_shared<const Faults>(std::move(faults));
}

std::vector<std::string> fault_texts(const FaultSettings& faults) {
  std::vector<std::string> texts;
  for (const SlowFault& slow : faults.slow) {
    std::string text =
        fmt::format("{} takes {:g} times as long{}", slow.target.text, slow.factor, period_text(slow.when));
    if (slow.again) {
      text += fmt::format(" for {} every {}", duration_text(slow.again->duration_s), duration_text(slow.again->mean_s));
    }
    texts.push_back(std::move(text));
  }
  for (const Jitter& jitter : faults.jitter) {
    static constexpr const char* kWhat[] = {"compute", "network", "input"};
    texts.push_back(
        fmt::format("{} times vary (cv {:g})", kWhat[static_cast<std::size_t>(jitter.on)], jitter.variation));
  }
  for (const FailFault& fail : faults.fail) {
    std::string when = "at random";
    if (fail.at_s) when = "at " + duration_text(*fail.at_s);
    if (fail.step) when = fmt::format("before step {}", *fail.step);
    if (fail.mttf_s) when += fmt::format(", every {}", duration_text(*fail.mttf_s));
    texts.push_back(fmt::format("{} is lost {}", fail.target.text, when));
  }
  if (!faults.trace.empty())
    texts.push_back(fmt::format("machines come and go ({} events of a trace)", faults.trace.size()));
  return texts;
}

}  // namespace tandem
