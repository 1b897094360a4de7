// SimGrid's clock, with callbacks at the end of work on a node, at the end of a transfer between two hosts, and at a
// date.
//
// SimGrid sees only the transfers, and one timer for the earliest of all other dates and ends of work (Agenda,
// Processors). Whatever is due at one instant is called in this order, until nothing is left: dates, ends of work, ends
// of flows.
//
// One Simulation at a time in a process. Everything here runs in SimGrid's kernel: call it inside in_kernel() or from a
// callback. Callbacks must not throw: whoever passes one that can fail catches and reports to the run (guarded()).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/sim/agenda.h"
#include "engine/sim/base/seeded_schedule.h"
#include "engine/sim/base/simgrid_compat.h"
#include "engine/sim/platform.h"
#include "engine/sim/processors.h"
#include "engine/task.h"
#include "engine/timeline.h"

namespace tandem::sim {

// 2^63 ns are 292 years, rounded down.
inline constexpr double kLatestS = 9.2e9;

class Simulation {
 public:
  using Then = std::function<void()>;

  // `nodes` become hosts, with their numbers of cores. `schedule` decides the order of what ends at the same instant;
  // null: the order above.
  Simulation(const Topology& topology, Router& router, std::span<const HostSpec> nodes,
             SeededSchedule* schedule = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Platform& platform() { return *platform_; }
  // Installs a function that the kernel calls when something would end at a date that no record can hold, or at none:
  // an infinite one, or NaN. It must fail the run. What would have ended is forgotten.
  void on_beyond(std::function<void()> call) { on_beyond_ = std::move(call); }
  // Installs a function that the kernel calls whenever callbacks have run and no activity is left.
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }

  // Installs a function that the kernel calls before each end of an activity.
  void on_event(std::function<void()> call) { on_event_ = std::move(call); }

  static double now_s() { return simgrid_compat::s4u::Engine::get_clock(); }
  static Nanoseconds now_ns();

  // Occupies one core of the node's host with work that takes `seconds` on an undivided core, and never less than
  // `alone_s`. If `alone_s` is longer, the work uses only part of its core, and other work may use the rest.
  void execute(NodeIndex node, double seconds, double alone_s, Then then);
  void execute(NodeIndex node, double seconds, Then then) { execute(node, seconds, 0, std::move(then)); }
  // Calls `then` at that date, or now if it is past.
  void at(double date_s, Then then);

  // Calls `then` at that date, outside the order of the schedule, unless the alarm is called off before. A pending
  // alarm counts as an activity: the simulation is not idle meanwhile.
  using Alarm = simgrid_compat::Timer*;
  Alarm set_alarm(double date_s, Then then);
  void call_off(Alarm alarm);

  // An activity of SimGrid; valid until its end has been reported. Network holds its flows by these.
  struct Activity {
    Simulation* simulation = nullptr;
    Then then;
    simgrid_compat::s4u::ActivityPtr handle;
  };
  // Starts a flow over the links of the route, without their latency, at no more than `most_bytes_per_s` (0: no bound).
  // Bytes are rounded; a flow of less than half a byte ends at this instant. Calls `ended` at its end, before anything
  // else learns of it, outside the order of the schedule. The flow represents `count` equal ones of so many bytes, and
  // shares links as they would.
  Activity& start_flow(NodeIndex from, NodeIndex to, double bytes, double most_bytes_per_s, int count, Then ended);
  // Returns the bytes that all equal flows together still have to move.
  static double remaining_bytes(const Activity& flow);
  // Wraps `then` so that the schedule decides when it is called among everything that ends at the same instant, after
  // all those ends were reported. Returns `then` itself without a schedule.
  Then in_scheduled_order(Then then);

  bool is_busy() const { return under_way_ > 0; }

  void run();

 private:
  static void ended(void* activity);
  Activity& begin_activity(Then then);
  void finish(Activity& activity);
  void end(const Then& then);
  bool is_within(double date_s) const;
  void reach_date();
  bool end_work();
  void end_work_before_flow();
  void set_timer();
  void take_turns();

  SeededSchedule* schedule_;
  std::vector<Then> due_;  // ended at this instant; each awaits its turn
  std::unique_ptr<Platform> platform_;
  simgrid_compat::s4u::Host* any_host_ = nullptr;
  Agenda agenda_;
  Processors processors_;
  std::vector<Then> ended_work_;            // kept for its memory
  simgrid_compat::Timer* timer_ = nullptr;  // for the earliest date or end of work; null if there is none
  double timer_date_s_ = 0;
  bool is_at_date_ = false;  // the timer will be set when all of this date has been called
  std::function<void()> on_idle_, on_beyond_, on_event_;
  std::deque<Activity> activities_;  // a deque, because their addresses must not change
  std::vector<Activity*> free_;
  std::vector<simgrid_compat::s4u::ActivityPtr> ended_;  // the kernel still uses them while it reports their end
  std::int64_t under_way_ = 0;                           // activities, alarms, and what is due
};

// The task that has the turn, for a watch to read from another thread; null: the kernel, with the end of an activity.
inline std::atomic<const Task*> task_in_turn = nullptr;

// Runs `call` in the kernel and returns when it has run; usable from a task and from a callback. Other tasks may have
// their turns before.
template <typename Call>
void in_kernel(Call&& call) {
  const Task* const task = task_in_turn.load(std::memory_order_relaxed);
  simgrid_compat::in_kernel(std::forward<Call>(call));
  task_in_turn.store(task, std::memory_order_relaxed);
}

}  // namespace tandem::sim
