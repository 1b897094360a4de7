#include "scenarios/faults/fault_schedule.h"

#include <cmath>
#include <limits>

#include "engine/base/philox.h"
#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

bool brings_machine(const ClusterEvent& event) {
  using Kind = ClusterEvent::Kind;
  return event.kind == Kind::back || event.kind == Kind::server_back || event.kind == Kind::node_comes;
}

}  // namespace

FaultSchedule::FaultSchedule(const FaultSettings& settings, int workers) : workers_(workers) {
  for (std::size_t i = 0; i < settings.slow.size(); ++i) {
    const SlowFault& slow = settings.slow[i];
    const int fault = static_cast<int>(i);
    if (slow.again) {
      add_process({.kind = ClusterEvent::Kind::slow_begins,
                   .fault = fault,
                   .mean_s = slow.again->mean_s - slow.again->duration_s,
                   .duration_s = slow.again->duration_s,
                   .seed = slow.again->seed},
                  slow.target);
    } else if (!slow.when.first_step) {
      const bool is_each = slow.target.which == FaultTarget::Which::each;
      for (int worker = is_each ? 0 : slow.target.task; worker < (is_each ? workers : slow.target.task + 1); ++worker) {
        add({.date_s = slow.when.from_s, .kind = ClusterEvent::Kind::slow_begins, .fault = fault, .worker = worker});
        if (std::isfinite(slow.when.to_s))
          add({.date_s = slow.when.to_s, .kind = ClusterEvent::Kind::slow_ends, .fault = fault, .worker = worker});
      }
    }
  }
  for (std::size_t i = 0; i < settings.fail.size(); ++i) {
    const FailFault& fail = settings.fail[i];
    const int fault = static_cast<int>(i);
    if (fail.at_s)
      add({.date_s = *fail.at_s, .kind = ClusterEvent::Kind::lost, .fault = fault, .worker = fail.target.task});
    if (!fail.mttf_s) continue;
    add_process({.kind = ClusterEvent::Kind::lost, .fault = fault, .mean_s = *fail.mttf_s, .seed = fail.seed},
                fail.target);
    failure_rate_ += (fail.target.which == FaultTarget::Which::each ? workers : 1) / *fail.mttf_s;
  }
  for (const TraceEvent& event : settings.trace) {
    add({.date_s = event.date_s,
         .kind = event.comes ? ClusterEvent::Kind::node_comes : ClusterEvent::Kind::node_goes,
         .node = event.node});
  }
}

void FaultSchedule::add_process(Process process, const FaultTarget& target) {
  process.worker = target.task;
  process.draws_worker = target.which == FaultTarget::Which::any;
  const bool is_each = target.which == FaultTarget::Which::each;
  for (int worker = 0; worker < (is_each ? workers_ : 1); ++worker) {
    if (is_each) process.worker = worker;
    processes_.push_back(process);
    schedule(static_cast<int>(processes_.size()) - 1, 0);
  }
}

// Draws of the processes of one seed, and of one process, are independent.
double FaultSchedule::uniform(Process& process) const {
  const auto place = static_cast<std::uint32_t>(&process - processes_.data());
  const std::uint64_t draw = process.draws++;
  const PhiloxWords words =
      philox({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), place,
              static_cast<std::uint32_t>(process.fault)},
             {static_cast<std::uint32_t>(process.seed), static_cast<std::uint32_t>(process.seed >> 32)});
  return (static_cast<double>(words[0]) + 1) * 0x1p-32;
}

void FaultSchedule::schedule(int process, double after_s) {
  Process& one = processes_[static_cast<std::size_t>(process)];
  const double date_s = after_s - one.mean_s * portable::log(uniform(one));
  const int worker = one.draws_worker ? std::min(workers_ - 1, static_cast<int>(uniform(one) * workers_)) : one.worker;
  entries_.push({.event = {.date_s = date_s, .kind = one.kind, .fault = one.fault, .worker = worker},
                 .number = added_++,
                 .process = process});
}

double FaultSchedule::next_date_s() const {
  return entries_.empty() ? std::numeric_limits<double>::infinity() : entries_.top().event.date_s;
}

ClusterEvent FaultSchedule::take() {
  const Entry entry = entries_.top();
  entries_.pop();
  returns_ -= brings_machine(entry.event) ? 1 : 0;
  if (entry.process < 0) return entry.event;
  const double duration_s = processes_[static_cast<std::size_t>(entry.process)].duration_s;
  if (duration_s > 0) {
    add({.date_s = entry.event.date_s + duration_s,
         .kind = ClusterEvent::Kind::slow_ends,
         .fault = entry.event.fault,
         .worker = entry.event.worker});
  }
  schedule(entry.process, entry.event.date_s + duration_s);
  return entry.event;
}

void FaultSchedule::add(ClusterEvent event) {
  returns_ += brings_machine(event) ? 1 : 0;
  entries_.push({.event = std::move(event), .number = added_++});
}

}  // namespace tandem
