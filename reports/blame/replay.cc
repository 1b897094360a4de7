#include "reports/blame/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {

Replay::Replay(const RecordedJob& job) : job_(job), units_(job.groups), unit_of_(job.ops.size(), -1) {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    for (const int op : units_[unit]) unit_of_[static_cast<std::size_t>(op)] = static_cast<int>(unit);
  }
  for (std::size_t op = 0; op < job.ops.size(); ++op) {
    if (unit_of_[op] >= 0) continue;
    unit_of_[op] = static_cast<int>(units_.size());
    units_.push_back({static_cast<int>(op)});
  }
  order_units();
}

// A unit can be executed when all units with ops for which its own ops wait have been.
void Replay::order_units() {
  std::vector<std::vector<int>> next(units_.size());
  std::vector<int> waits(units_.size(), 0);
  for (std::size_t op = 0; op < job_.ops.size(); ++op) {
    for (const int before : job_.after[op]) {
      next[static_cast<std::size_t>(unit_of_[static_cast<std::size_t>(before)])].push_back(unit_of_[op]);
      ++waits[static_cast<std::size_t>(unit_of_[op])];
    }
  }
  std::vector<int> ready;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (waits[unit] == 0) ready.push_back(static_cast<int>(unit));
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const int unit : next[static_cast<std::size_t>(ready[i])]) {
      if (--waits[static_cast<std::size_t>(unit)] == 0) ready.push_back(unit);
    }
  }
  if (ready.size() < units_.size()) {
    const auto stuck = std::find_if(waits.begin(), waits.end(), [](int count) { return count > 0; });
    const auto op = static_cast<std::size_t>(units_[static_cast<std::size_t>(stuck - waits.begin())].front());
    const RecordedWorker& worker = job_.workers[static_cast<std::size_t>(job_.ops[op].worker)];
    throw InputError({problem_at(
        job_.file, kBeginning,
        fmt::format("its ops wait for each other in a circle, among them one of type {} on rank {}: their order on "
                    "different ranks contradicts itself",
                    job_.types[static_cast<std::size_t>(job_.ops[op].type)], worker.rank))});
  }
  std::vector<std::vector<int>> ordered;
  ordered.reserve(units_.size());
  for (const int unit : ready) ordered.push_back(std::move(units_[static_cast<std::size_t>(unit)]));
  units_ = std::move(ordered);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    for (const int op : units_[unit]) unit_of_[static_cast<std::size_t>(op)] = static_cast<int>(unit);
  }
}

double Replay::start_of(int op, std::size_t step, const std::vector<double>& ends_s) const {
  double start = 0;
  for (const int before : job_.after[static_cast<std::size_t>(op)]) {
    start = std::max(start, ends_s[job_.at(static_cast<std::size_t>(before), step)]);
  }
  return start;
}

std::vector<double> Replay::ends(const std::vector<double>& durations_s) const {
  const std::size_t steps = job_.steps.size();
  std::vector<double> ends(durations_s.size());
  std::vector<double> starts(steps);
  for (const std::vector<int>& unit : units_) {
    std::fill(starts.begin(), starts.end(), 0.0);
    for (const int op : unit) {
      for (const int before : job_.after[static_cast<std::size_t>(op)]) {
        const std::size_t first = job_.at(static_cast<std::size_t>(before), 0);
        for (std::size_t step = 0; step < steps; ++step) starts[step] = std::max(starts[step], ends[first + step]);
      }
    }
    for (const int op : unit) {
      const std::size_t first = job_.at(static_cast<std::size_t>(op), 0);
      for (std::size_t step = 0; step < steps; ++step) ends[first + step] = starts[step] + durations_s[first + step];
    }
  }
  return ends;
}

std::vector<double> Replay::step_times(const std::vector<double>& durations_s) const {
  const std::vector<double> ends_s = ends(durations_s);
  std::vector<double> times(job_.steps.size(), 0);
  for (std::size_t i = 0; i < ends_s.size(); ++i) {
    double& time = times[i % times.size()];
    time = std::max(time, ends_s[i]);
  }
  return times;
}

Replay::Cause Replay::cause(int op, std::size_t step, const std::vector<double>& ends_s) const {
  Cause cause{.last_to_start = op};
  double latest = -1;
  for (const int member : units_[static_cast<std::size_t>(unit_of_[static_cast<std::size_t>(op)])]) {
    const double start = start_of(member, step, ends_s);
    // Its own worker's op is the cause where another one starts at the same time.
    if (start < latest || (start == latest && member != op)) continue;
    latest = start;
    cause.last_to_start = member;
  }
  double end = -1;
  for (const int before : job_.after[static_cast<std::size_t>(cause.last_to_start)]) {
    const double before_s = ends_s[job_.at(static_cast<std::size_t>(before), step)];
    if (before_s <= end) continue;
    end = before_s;
    cause.waited_for = before;
  }
  return cause;
}

}  // namespace tandem
