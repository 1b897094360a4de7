#include "scenarios/faults/course_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "scenarios/faults/best_interval.h"
#include "scenarios/faults/course_clock.h"
#include "scenarios/faults/course_evaluations.h"
#include "scenarios/faults/course_machines.h"
#include "scenarios/faults/fault_schedule.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr double kWhole = 1e-9;  // of a step: less is rounding

class Course {
 public:
  Course(const CourseJob& job, const FaultSettings& faults)
      : job_(job),
        faults_(faults),
        recovery_(faults.recovery),
        schedule_(faults, job.workers),
        machines_(job.workers, recovery_.spares, job.policy == RecoveryPolicy::spare,
                  !faults.trace.empty() && faults.trace.front().comes) {
    for (std::size_t i = 0; i < faults.fail.size(); ++i) {
      if (faults.fail[i].step) triggers_.emplace(*faults.fail[i].step, static_cast<int>(i));
    }
    for (const SlowFault& slow : faults.slow) {
      if (!slow.when.first_step) continue;
      step_edges_.insert(*slow.when.first_step);
      step_edges_.insert(double{1} + slow.when.last_step);
    }
  }

  JobCourse run() {
    undisturbed_s_ = step_s({});
    take_due_events();
    grows_ = false;  // those that are there at the beginning begin the job
    while (course_.ended.empty() && done_ < job_.steps - kWhole) {
      take_due_events();
      if (failed_) {
        recover();
      } else if (grows_) {
        grow();
      } else if (must_wait()) {
        wait_for_event("no machine takes the place of one that is lost");
      } else if (evaluations_.is_due(done_)) {
        evaluate();
      } else {
        train();
      }
    }
    return finish();
  }

 private:
  double step_s(const ClusterState& state) {
    const auto [known, is_new] = steps_s_.try_emplace(state, 0.0);
    if (is_new) known->second = job_.step_s(state);
    return known->second;
  }

  bool goes_on_without() const {
    return job_.policy == RecoveryPolicy::continue_ || job_.policy == RecoveryPolicy::elastic;
  }
  bool must_wait() {
    if (!servers_lost_.empty()) return true;
    const int lost = machines_.lost();
    if (lost == 0) return false;
    return !goes_on_without() || lost == job_.workers || !std::isfinite(step_s(state()));
  }

  ClusterState state() const {
    ClusterState state{.slow = slow_, .lost_workers = goes_on_without() ? machines_.lost() : 0};
    for (std::size_t i = 0; i < faults_.slow.size(); ++i) {
      const SlowFault& slow = faults_.slow[i];
      const double step = std::floor(done_ + kWhole);
      const bool is_now = slow.when.first_step && *slow.when.first_step <= step && step <= slow.when.last_step;
      if (!is_now) continue;
      const bool is_each = slow.target.which == FaultTarget::Which::each;
      const int first = is_each ? 0 : slow.target.task, end = is_each ? job_.workers : first + 1;
      for (int worker = first; worker < end; ++worker) state.slow.emplace(static_cast<int>(i), worker);
    }
    std::erase_if(state.slow, [&](const auto& one) {
      const bool is_link = !faults_.slow[static_cast<std::size_t>(one.first)].target.links.empty();
      return !is_link && !machines_.is_up(one.second);
    });
    return state;
  }

  // --- Events ---

  void take_due_events() {
    while (schedule_.next_date_s() <= clock_.now_s()) take_event();
    while (!triggers_.empty() && triggers_.begin()->first <= done_ + kWhole) {
      const int fault = triggers_.begin()->second;
      triggers_.erase(triggers_.begin());
      lose(faults_.fail[static_cast<std::size_t>(fault)].target.task, fault);
    }
  }

  void take_event() {
    const ClusterEvent event = schedule_.take();
    switch (event.kind) {
      case ClusterEvent::Kind::slow_begins:
        slow_.emplace(event.fault, event.worker);
        break;
      case ClusterEvent::Kind::slow_ends:
        slow_.erase({event.fault, event.worker});
        break;
      case ClusterEvent::Kind::lost:
        lose(event.worker, event.fault);
        break;
      case ClusterEvent::Kind::back:
        if (machines_.come_back(event.worker)) note_return();
        break;
      case ClusterEvent::Kind::server_back:
        servers_lost_.erase(event.worker);
        break;
      case ClusterEvent::Kind::node_comes:
        if (machines_.node_comes(event.node)) note_return();
        break;
      case ClusterEvent::Kind::node_goes:
        if (machines_.node_goes(event.node)) note_failure();
        break;
    }
  }

  void lose(int worker, int fault) {
    const FailFault& fail = faults_.fail[static_cast<std::size_t>(fault)];
    const bool is_server = fail.target.job == "ps";
    if (is_server ? !servers_lost_.insert(worker).second : !machines_.lose(worker)) return;
    is_server_lost_ |= is_server;
    note_failure();
    // Where spares take the place, a machine of which nothing is said is not repaired.
    const double unstated_s = job_.policy == RecoveryPolicy::spare && !is_server ? kNever : 0;
    const double after_s = fail.back_after_s.value_or(unstated_s) + (is_server ? 0 : rejoin_s());
    if (!std::isfinite(after_s)) return;
    const auto kind = is_server ? ClusterEvent::Kind::server_back : ClusterEvent::Kind::back;
    schedule_.add({.date_s = clock_.now_s() + after_s, .kind = kind, .worker = worker});
  }

  // Where the others go on meanwhile, a worker that comes back restarts and loads by itself.
  double rejoin_s() const {
    if (job_.policy != RecoveryPolicy::continue_) return 0;
    return recovery_.detection_s.value_or(0) + restart_s() + recovery_.checkpoint.load_s.value_or(0);
  }
  double restart_s() const { return recovery_.restart_s.value_or(0) + job_.extra_s; }

  void note_failure() {
    if (++course_.failures > kMostFailures) {
      throw RunError(fmt::format("after {} failures {:.0f} of {:.0f} steps are done: the job does not come to its end",
                                 kMostFailures, done_, job_.steps));
    }
    failed_ = true;
  }

  void note_return() {
    if (job_.policy == RecoveryPolicy::elastic) grows_ = true;
  }

  // --- What the job does ---

  // Lets time pass in this state, unless a worker is lost before its end. Returns whether it has passed.
  bool spend(CourseState state, double seconds) {
    const double end_s = clock_.now_s() + seconds;
    while (!failed_ && schedule_.next_date_s() < end_s) {
      clock_.pass(state, schedule_.next_date_s());
      take_event();
    }
    if (failed_) return false;
    clock_.pass(state, end_s);
    return true;
  }

  void wait_for_event(const char* why_in_vain) {
    if (schedule_.returns() == 0) {
      course_.ended = fmt::format("{} after {} of {} steps", why_in_vain, std::floor(done_ + kWhole), job_.steps);
      return;
    }
    clock_.pass(CourseState::waiting, schedule_.next_date_s());
    take_event();
  }

  double checkpoint_time_s() const {
    return recovery_.checkpoint.overlapped ? 0 : recovery_.checkpoint.time_s.value_or(0);
  }
  bool saves() const { return recovery_.checkpoint.saves(); }

  // Returns after how many steps the next checkpoint comes, at this pace and with so many seconds since the last one.
  double steps_to_checkpoint(double pace_s, double since_s) const {
    if (recovery_.checkpoint.every_steps)
      return static_cast<double>(*recovery_.checkpoint.every_steps) - (done_ - begun_);
    const double left_s = *recovery_.checkpoint.every_s - since_s;
    const double end = std::ceil(done_ + std::max(0.0, left_s) / pace_s - kWhole);
    return std::max(end, std::floor(done_ + kWhole) + 1) - done_;
  }

  // Steps to the next event, checkpoint, or end.
  void train() {
    const double pace_s = step_s(state());
    if (!std::isfinite(pace_s)) return wait_for_event("the job cannot go on in the state of its cluster");
    const double until_s = std::min(schedule_.next_date_s(), clock_.commit_date_s());
    double goal = std::min(job_.steps, evaluations_.next(done_));
    if (!triggers_.empty()) goal = std::min(goal, double(triggers_.begin()->first));
    const auto edge = step_edges_.upper_bound(done_ + kWhole);
    if (edge != step_edges_.end()) goal = std::min(goal, *edge);
    if (saves() && train_to_checkpoints(pace_s, until_s, goal)) return;
    const double next = saves() ? steps_to_checkpoint(pace_s, clock_.now_s() - begun_s_) : kNever;
    const bool is_checkpoint = next < goal - done_;
    const double steps = std::min(goal - done_, next);
    const double end_s = clock_.now_s() + steps * pace_s;
    if (end_s > until_s) {
      step_until(until_s, (until_s - clock_.now_s()) / pace_s);
      return;
    }
    step_until(end_s, steps);
    done_ = std::abs(done_ - std::round(done_)) < kWhole ? std::round(done_) : done_;
    if (evaluations_.is_due(done_)) evaluate();
    if (is_checkpoint && !failed_) save();
  }

  // A failure begins it anew, after the recovery.
  void evaluate() {
    if (!spend(CourseState::evaluating, job_.evaluation_s(state()))) return;
    evaluations_.did(done_);
    ++course_.evaluations;
  }

  void step_until(double end_s, double steps) {
    TANDEM_CHECK(steps >= 0, "a course that goes back");
    clock_.train(end_s, steps * undisturbed_s_);
    done_ += steps;
  }

  // Does whole intervals between checkpoints, of which nothing happens, in one go. Returns false if there are too few.
  bool train_to_checkpoints(double pace_s, double until_s, double goal) {
    if (done_ != begun_ || clock_.commit_date_s() != kNever || recovery_.checkpoint.overlapped) return false;
    const double steps = steps_to_checkpoint(pace_s, 0);
    const double interval_s = steps * pace_s + checkpoint_time_s();
    const double most = std::min((until_s - clock_.now_s()) / interval_s, (goal - done_) / steps);
    const double count = std::floor(std::min(most, 1e15)) - 1;
    if (count < 2) return false;
    clock_.train(clock_.now_s() + count * steps * pace_s, count * steps * undisturbed_s_);
    clock_.pass(CourseState::checkpointing, clock_.now_s() + count * checkpoint_time_s());
    clock_.commit();
    done_ += count * steps;
    saved_ = done_;
    begin_interval();
    course_.checkpoints += static_cast<std::int64_t>(count);
    return true;
  }

  void begin_interval() {
    begun_ = done_;
    begun_s_ = clock_.now_s();
  }

  void save() {
    const double at = done_;
    if (recovery_.checkpoint.overlapped) {
      // One that is still being written is given up.
      clock_.commit_at(clock_.now_s() + recovery_.checkpoint.time_s.value_or(0), [this, at] {
        saved_ = at;
        ++course_.checkpoints;
      });
    } else {
      if (!spend(CourseState::checkpointing, checkpoint_time_s())) return;
      clock_.commit();
      saved_ = at;
      ++course_.checkpoints;
    }
    begin_interval();
  }

  void roll_back() {
    if (!saves()) {
      clock_.commit();
      saved_ = done_;
    }
    course_.steps_lost += done_ - saved_;
    clock_.lose();
    done_ = saved_;
    evaluations_.go_back(done_);
    begin_interval();
  }

  // --- Recovery ---

  // Whatever is lost meanwhile begins the recovery anew.
  void recover() {
    bool restarts = false, loads = false;
    do {
      failed_ = false;
      const bool is_server = std::exchange(is_server_lost_, false);
      switch (job_.policy) {
        case RecoveryPolicy::end:
          course_.ended =
              fmt::format("a worker was lost after {} of {} steps, and nothing takes its place (policy: end)",
                          std::floor(done_ + kWhole), job_.steps);
          return;
        case RecoveryPolicy::continue_:
          if (!is_server && job_.repeats_functions) ++course_.updates_twice;
          restarts |= is_server;
          break;
        case RecoveryPolicy::wait:
          restarts |= is_server;
          loads = true;
          break;
        default:
          restarts = true;
      }
      if (restarts) roll_back();
      if (loads && !restarts) lose_step();
      if (restarts || loads) go_through(true, restarts);
    } while (failed_ && course_.ended.empty());
    grows_ = false;
  }

  // All restart with the workers that have come back; nothing is lost.
  void grow() {
    grows_ = false;
    if (!spend(CourseState::checkpointing, checkpoint_time_s())) return;
    clock_.commit();
    saved_ = done_;
    go_through(false, true);
  }

  // The others keep their state, and do the step again that was under way.
  void lose_step() {
    const double part = done_ - std::floor(done_ + kWhole);
    if (part <= kWhole) return;
    clock_.lose_last(part * undisturbed_s_);
    course_.steps_lost += part;
    done_ -= part;
  }

  // The phases of a recovery, until another worker is lost.
  void go_through(bool detects, bool restarts) {
    if (detects && !spend(CourseState::detecting, recovery_.detection_s.value_or(0))) return;
    if (!await_workers()) return;
    if (restarts && !spend(CourseState::restarting, restart_s())) return;
    spend(CourseState::loading, recovery_.checkpoint.load_s.value_or(0) + (restarts ? 0 : job_.extra_s));
    begin_interval();
  }

  // Takes spares, and waits until every place has a machine, where the job does not go on without. Returns false if
  // another worker is lost meanwhile, or it waits in vain.
  bool await_workers() {
    machines_.fill_places();
    while (!failed_ && course_.ended.empty() && must_wait()) {
      wait_for_event("no machine takes the place of one that is lost");
      machines_.fill_places();
    }
    return !failed_ && course_.ended.empty();
  }

  JobCourse finish() {
    clock_.commit();
    course_.policy = name_of(job_.policy);
    course_.steps = job_.steps;
    course_.steps_done = std::min(job_.steps, done_);
    course_.undisturbed_step_s = undisturbed_s_;
    clock_.report(course_);
    add_failure_figures(course_, schedule_.failure_rate(), checkpoint_time_s());
    return course_;
  }

  const CourseJob& job_;
  const FaultSettings& faults_;
  const RecoverySettings& recovery_;
  FaultSchedule schedule_;
  CourseMachines machines_;
  std::map<ClusterState, double> steps_s_;
  std::multimap<int, int> triggers_;  // failures by the step before which they come
  std::set<double> step_edges_;       // before which something begins or ends to be slow
  std::set<std::pair<int, int>> slow_;
  std::set<int> servers_lost_;
  CourseEvaluations evaluations_{job_.evaluation_every};
  CourseClock clock_;
  JobCourse course_;
  double undisturbed_s_ = 0;
  double done_ = 0, saved_ = 0;     // steps
  double begun_ = 0, begun_s_ = 0;  // of the interval between two checkpoints
  bool failed_ = false, is_server_lost_ = false, grows_ = false;
};

}  // namespace

JobCourse course_of(const CourseJob& job, const FaultSettings& faults) {
  return Course(job, faults).run();
}

}  // namespace tandem
