#include "reports/blame/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "reports/base/statistics.h"
#include "reports/blame/clocks.h"
#include "reports/blame/replay.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

double mean_seconds(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// An exchange that seems to have ended so long before its peer began took no time of its own: a send may end when its
// data have left. Smaller differences are the noise of clocks, which is kept, because only together with noise in the
// other direction it adds up to nothing.
constexpr double kEndedBefore_s = 0.01;

// Returns the durations of a job's ops; of exchanges those from the last start of the group on.
std::vector<double> own_times(const RecordedJob& job) {
  std::vector<double> times = job.duration_s;
  for (const std::vector<int>& group : job.groups) {
    for (std::size_t step = 0; step < job.steps.size(); ++step) {
      double last = -std::numeric_limits<double>::infinity();
      for (const int op : group) last = std::fmax(last, job.start_s[job.at(static_cast<std::size_t>(op), step)]);
      for (const int op : group) {
        const std::size_t at = job.at(static_cast<std::size_t>(op), step);
        const double time = job.start_s[at] + job.duration_s[at] - last;
        times[at] = time <= -kEndedBefore_s ? 0 : time;
      }
    }
  }
  return times;
}

// Returns the time that each kind of ops ideally has.
std::vector<double> ideal_of_kinds(const RecordedJob& job, const std::vector<double>& times) {
  std::vector<std::vector<double>> of_kind(job.alikes.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto kind = static_cast<std::size_t>(job.ops[i / job.steps.size()].alike);
    if (!std::isnan(times[i])) of_kind[kind].push_back(times[i]);
  }
  std::vector<double> ideal(job.alikes.size(), 0);
  for (std::size_t kind = 0; kind < ideal.size(); ++kind) {
    if (of_kind[kind].empty()) continue;
    ideal[kind] = job.alikes[kind].by_median ? median_of(std::move(of_kind[kind])) : mean_seconds(of_kind[kind]);
  }
  return ideal;
}

// Two sets of times, and replays that mix them.
class WhatIf {
 public:
  explicit WhatIf(const RecordedJob& job) : job_(job), replay_(job), real_(own_times(job)), ideal_(real_.size()) {
    const std::vector<double> of_kinds = ideal_of_kinds(job, real_);
    for (std::size_t i = 0; i < ideal_.size(); ++i) {
      ideal_[i] = of_kinds[static_cast<std::size_t>(job.ops[i / job.steps.size()].alike)];
      if (std::isnan(real_[i])) real_[i] = ideal_[i];
    }
  }

  using Chosen = std::function<bool(const RecordedOp&)>;
  std::vector<double> step_times_with_real(const Chosen& chosen) const { return mixed(ideal_, real_, chosen); }
  std::vector<double> step_times_with_ideal(const Chosen& chosen) const { return mixed(real_, ideal_, chosen); }
  const Replay& replay() const { return replay_; }
  const std::vector<double>& real() const { return real_; }

 private:
  std::vector<double> mixed(const std::vector<double>& most, const std::vector<double>& some,
                            const Chosen& chosen) const {
    std::vector<double> times = most;
    const auto steps = static_cast<std::ptrdiff_t>(job_.steps.size());
    for (std::size_t op = 0; op < job_.ops.size(); ++op) {
      if (!chosen(job_.ops[op])) continue;
      const auto first = static_cast<std::ptrdiff_t>(job_.at(op, 0));
      std::copy(some.begin() + first, some.begin() + first + steps, times.begin() + first);
    }
    return replay_.step_times(times);
  }

  const RecordedJob& job_;
  const Replay replay_;
  std::vector<double> real_, ideal_;
};

// Returns how long steps were, from the first start to the last end of their ops.
std::vector<double> recorded_steps(const RecordedJob& job) {
  std::vector<double> first(job.steps.size(), std::numeric_limits<double>::infinity());
  std::vector<double> last(job.steps.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < job.start_s.size(); ++i) {
    const std::size_t step = i % job.steps.size();
    first[step] = std::fmin(first[step], job.start_s[i]);
    last[step] = std::fmax(last[step], job.start_s[i] + job.duration_s[i]);
  }
  for (std::size_t step = 0; step < last.size(); ++step) last[step] -= first[step];
  return last;
}

class Blamer {
 public:
  explicit Blamer(const RecordedJob& job) : job_(job), what_if_(job) {
    result_.name = job.name;
    result_.workers = job.workers;
    result_.replicas = job.replicas();
    result_.stages = job.stages();
    result_.steps = job.steps;
    result_.notes = job.notes;
    result_.ops = static_cast<std::size_t>(
        std::count_if(job.duration_s.begin(), job.duration_s.end(), [](double time) { return !std::isnan(time); }));
  }

  Blame make() {
    set_step_times();
    for (std::size_t replica = 0; replica < result_.replicas; ++replica) {
      result_.by_replica.push_back(part(fmt::format("DP rank {}", replica), [&](const RecordedOp& op) {
        return worker(op).replica == static_cast<int>(replica);
      }));
    }
    for (std::size_t stage = 0; stage < result_.stages; ++stage) {
      result_.by_stage.push_back(part(fmt::format("stage {}", stage), [&](const RecordedOp& op) {
        return worker(op).stage == static_cast<int>(stage);
      }));
    }
    add_types();
    add_workers();
    add_fixes();
    add_path();
    return std::move(result_);
  }

 private:
  const RecordedWorker& worker(const RecordedOp& op) const { return job_.workers[static_cast<std::size_t>(op.worker)]; }

  void set_step_times() {
    const std::vector<double> replayed = what_if_.step_times_with_real([](const RecordedOp&) { return true; });
    ideal_ = what_if_.step_times_with_real([](const RecordedOp&) { return false; });
    result_.recorded_s = mean_seconds(recorded_steps(job_));
    result_.replayed_s = mean_seconds(replayed);
    result_.ideal_s = mean_seconds(ideal_);
    check_step_times(replayed);
    result_.slowdown = result_.replayed_s / result_.ideal_s;
    result_.launch_slowdown = result_.recorded_s / result_.replayed_s;
    for (std::size_t step = 0; step < replayed.size(); ++step) {
      result_.step_slowdowns.push_back(replayed[step] / ideal_[step]);
    }
  }

  // Slowdowns are ratios of these.
  void check_step_times(const std::vector<double>& replayed) const {
    constexpr double kShortest_s = 1e-9, kLongest_s = 1e7;
    const auto refuse = [this](const std::string& message) {
      throw InputError({problem_at(job_.file, kBeginning, message)});
    };
    const double shortest = std::min(*std::ranges::min_element(ideal_), *std::ranges::min_element(replayed));
    if (!(shortest >= kShortest_s)) {
      refuse("a step of its ops would take no time, because most of them took none: nothing can be slower by a factor");
    }
    if (result_.recorded_s > kLongest_s) {
      refuse(fmt::format("its steps take {:.4g} s: the times of its ranks do not belong together", result_.recorded_s));
    }
  }

  BlamedPart part(std::string name, const WhatIf::Chosen& chosen) const {
    const std::vector<double> times = what_if_.step_times_with_real(chosen);
    BlamedPart part{.name = std::move(name), .slowdown = mean_seconds(times) / result_.ideal_s};
    for (std::size_t step = 0; step < times.size(); ++step) part.by_step.push_back(times[step] / ideal_[step]);
    return part;
  }

  void add_types() {
    for (std::size_t type = 0; type < job_.types.size(); ++type) {
      const auto is_of_type = [&](const RecordedOp& op) { return op.type == static_cast<int>(type); };
      if (std::none_of(job_.ops.begin(), job_.ops.end(), is_of_type)) continue;
      result_.by_type.push_back(part(job_.types[type], is_of_type));
    }
    std::stable_sort(result_.by_type.begin(), result_.by_type.end(),
                     [](const BlamedPart& a, const BlamedPart& b) { return a.slowdown > b.slowdown; });
  }

  void add_workers() {
    for (const RecordedWorker& worker : job_.workers) {
      result_.by_worker.push_back(std::min(result_.by_replica[static_cast<std::size_t>(worker.replica)].slowdown,
                                           result_.by_stage[static_cast<std::size_t>(worker.stage)].slowdown));
    }
    by_blame_.resize(job_.workers.size());
    std::iota(by_blame_.begin(), by_blame_.end(), 0);
    std::stable_sort(by_blame_.begin(), by_blame_.end(), [&](int a, int b) {
      const double one = result_.by_worker[static_cast<std::size_t>(a)];
      const double other = result_.by_worker[static_cast<std::size_t>(b)];
      if (one != other) return one > other;
      return job_.workers[static_cast<std::size_t>(a)].rank < job_.workers[static_cast<std::size_t>(b)].rank;
    });
    result_.worst_worker = by_blame_.front();
  }

  Fix fix(std::string what, const WhatIf::Chosen& chosen) const {
    Fix fix{.what = std::move(what), .step_s = mean_seconds(what_if_.step_times_with_ideal(chosen))};
    const double lost = result_.replayed_s - result_.ideal_s;
    constexpr double kNothing = 1e-9;  // of a step: what rounding leaves
    fix.share = std::abs(lost) <= kNothing * result_.replayed_s ? 0 : (result_.replayed_s - fix.step_s) / lost;
    return fix;
  }

  void add_fixes() {
    const RecordedWorker& worst = job_.workers[static_cast<std::size_t>(result_.worst_worker)];
    result_.fixes.push_back(fix(fmt::format("rank {} (DP rank {}, stage {})", worst.rank, worst.replica, worst.stage),
                                [&](const RecordedOp& op) { return op.worker == result_.worst_worker; }));
    const auto slowest =
        std::max_element(result_.by_stage.begin(), result_.by_stage.end(),
                         [](const BlamedPart& a, const BlamedPart& b) { return a.slowdown < b.slowdown; });
    const int stage = static_cast<int>(slowest - result_.by_stage.begin());
    if (result_.stages > 1) {
      result_.fixes.push_back(
          fix(fmt::format("stage {}", stage), [&](const RecordedOp& op) { return worker(op).stage == stage; }));
    }
    const std::string& type = result_.by_type.front().name;
    result_.fixes.push_back(
        fix(type, [&](const RecordedOp& op) { return job_.types[static_cast<std::size_t>(op.type)] == type; }));
    constexpr std::size_t kSlowestPercent = 3;
    const std::size_t count = (by_blame_.size() * kSlowestPercent + 99) / 100;
    std::vector<bool> is_slow(by_blame_.size(), false);
    for (std::size_t i = 0; i < count; ++i) is_slow[static_cast<std::size_t>(by_blame_[i])] = true;
    result_.slowest_workers = fix(count == 1 ? "the slowest worker" : fmt::format("the {} slowest workers", count),
                                  [&](const RecordedOp& op) { return is_slow[static_cast<std::size_t>(op.worker)]; });
    const int last = static_cast<int>(result_.stages) - 1;
    result_.last_stage = fix("the last stage", [&](const RecordedOp& op) { return worker(op).stage == last; });
  }

  void add_path() {
    const std::vector<double> ends_s = what_if_.replay().ends(what_if_.real());
    std::map<std::pair<int, int>, double> found;  // by worker and type
    for (std::size_t step = 0; step < job_.steps.size(); ++step) {
      std::size_t last = 0;
      for (std::size_t op = 0; op < job_.ops.size(); ++op) {
        if (ends_s[job_.at(op, step)] > ends_s[job_.at(last, step)]) last = op;
      }
      double end_s = ends_s[job_.at(last, step)];
      for (int op = static_cast<int>(last); op >= 0;) {
        const Replay::Cause cause = what_if_.replay().cause(op, step, ends_s);
        const auto before = static_cast<std::size_t>(cause.waited_for);
        const double start_s = cause.waited_for < 0 ? 0 : ends_s[job_.at(before, step)];
        const RecordedOp& late = job_.ops[static_cast<std::size_t>(cause.last_to_start)];
        found[{late.worker, late.type}] += end_s - start_s;
        end_s = start_s;
        op = cause.waited_for;
      }
    }
    for (const auto& [place, time_s] : found) {
      if (time_s <= 0) continue;
      result_.path.push_back({.worker = place.first,
                              .type = job_.types[static_cast<std::size_t>(place.second)],
                              .step_s = time_s / static_cast<double>(job_.steps.size())});
    }
    std::stable_sort(result_.path.begin(), result_.path.end(),
                     [](const BlamedPath& a, const BlamedPath& b) { return a.step_s > b.step_s; });
  }

  const RecordedJob& job_;
  const WhatIf what_if_;
  Blame result_;
  std::vector<double> ideal_;  // times of steps
  std::vector<int> by_blame_;  // workers, the slowest first
};

}  // namespace

Blame blame(RecordedJob job) {
  const double clocks_s = align_clocks(job);
  Blame result = Blamer(job).make();
  result.clocks_s = clocks_s;
  return result;
}

}  // namespace tandem
