#include "engine/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <utility>

#include "topologies/base/error.h"

namespace tandem::sim {
namespace {

using simgrid_compat::s4u::Engine;

bool is_simulating = false;

// Restores the handler of Ctrl-C that SimGrid replaces: its own kills the process without unwinding. A signal that
// comes meanwhile is held back until then.
class KeepInterruptHandler {
 public:
  KeepInterruptHandler() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &previous_mask_);
    sigaction(SIGINT, nullptr, &previous_);
  }
  ~KeepInterruptHandler() {
    sigaction(SIGINT, &previous_, nullptr);
    pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  }

 private:
  sigset_t previous_mask_{};
  struct sigaction previous_ {};
};

void start_engine(void (*ended)(void*)) {
  TANDEM_REQUIRE(!is_simulating, "two simulations at a time in one process");
  is_simulating = true;
  const KeepInterruptHandler keep;
  simgrid_compat::begin_engine(ended);
}

}  // namespace

Simulation::Simulation(const Topology& topology, Router& router, std::span<const HostSpec> nodes,
                       SeededSchedule* schedule)
    : schedule_(schedule), processors_(nodes) {
  start_engine(&Simulation::ended);
  platform_ = std::make_unique<Platform>(topology, router, nodes);
  if (!nodes.empty()) any_host_ = platform_->host(nodes.front().node);
}

Simulation::~Simulation() {
  ended_.clear();
  activities_.clear();
  platform_.reset();
  simgrid_compat::end_engine();
  is_simulating = false;
}

Nanoseconds Simulation::now_ns() {
  return std::llround(now_s() * 1e9);
}

// Returns whether a record can hold the date, which NaN is not. Otherwise fails the run.
bool Simulation::is_within(double date_s) const {
  if (date_s <= kLatestS) return true;
  if (on_beyond_) on_beyond_();
  return false;
}

void Simulation::execute(NodeIndex node, double seconds, double alone_s, Then then) {
  if (!is_within(now_s() + seconds) || !is_within(now_s() + alone_s)) return;
  if (seconds <= 0) return at(now_s() + alone_s, std::move(then));
  ++under_way_;
  processors_.add(node, seconds, alone_s, in_scheduled_order(std::move(then)));
  set_timer();
}

void Simulation::at(double date_s, Then then) {
  if (!is_within(date_s)) return;
  ++under_way_;
  agenda_.add(std::max(date_s, now_s()), in_scheduled_order(std::move(then)));
  set_timer();
}

// Calls all that is due; more may become due meanwhile.
void Simulation::reach_date() {
  timer_ = nullptr;
  is_at_date_ = true;
  do {
    while (!agenda_.empty() && agenda_.first_date_s() <= now_s()) end(agenda_.take_first());
  } while (end_work());
  is_at_date_ = false;
  set_timer();
}

bool Simulation::end_work() {
  processors_.take_ended(now_s(), ended_work_);
  const bool has_ended = !ended_work_.empty();
  for (const Then& then : ended_work_) end(then);
  ended_work_.clear();
  return has_ended;
}

void Simulation::set_timer() {
  if (is_at_date_) return;
  processors_.settle(now_s());
  double date_s = processors_.next_end_s();
  if (!agenda_.empty()) date_s = std::min(date_s, agenda_.first_date_s());
  if (timer_ != nullptr) {
    if (timer_date_s_ == date_s) return;
    simgrid_compat::remove(std::exchange(timer_, nullptr));
  }
  if (date_s == std::numeric_limits<double>::infinity()) return;
  timer_date_s_ = date_s;
  timer_ = simgrid_compat::at(std::max(date_s, now_s()), [this] { reach_date(); });
}

Simulation::Alarm Simulation::set_alarm(double date_s, Then then) {
  ++under_way_;
  return simgrid_compat::at(std::max(date_s, now_s()), [this, then = std::move(then)] { end(then); });
}

void Simulation::call_off(Alarm alarm) {
  simgrid_compat::remove(alarm);
  --under_way_;
}

Simulation::Activity& Simulation::start_flow(NodeIndex from, NodeIndex to, double bytes, double most_bytes_per_s,
                                             int count, Then ended) {
  const double most_bytes = 9e18 / count;  // 9e18 is below 2^63
  Activity& activity = begin_activity(std::move(ended));
  if (!(bytes <= most_bytes) && on_beyond_) on_beyond_();
  const auto whole_bytes =
      static_cast<std::uint64_t>(bytes <= most_bytes ? std::llround(bytes) : 0) * static_cast<std::uint64_t>(count);
  // SimGrid would never report the end of a flow without bytes.
  activity.handle = whole_bytes == 0
                        ? simgrid_compat::start_instant(any_host_, &activity)
                        : simgrid_compat::start_comm(platform_->host(from), platform_->host(to), whole_bytes,
                                                     count * most_bytes_per_s, count, &activity);
  return activity;
}

double Simulation::remaining_bytes(const Activity& flow) {
  return flow.handle->get_remaining();
}

void Simulation::run() {
  Engine::get_instance()->run();
}

Simulation::Activity& Simulation::begin_activity(Then then) {
  ++under_way_;
  if (free_.empty()) {
    activities_.emplace_back();
    free_.push_back(&activities_.back());
  }
  Activity& activity = *free_.back();
  free_.pop_back();
  activity.simulation = this;
  activity.then = std::move(then);
  return activity;
}

void Simulation::ended(void* activity) {
  if (activity == nullptr) return;  // SimGrid's own, of the platform
  auto& done = *static_cast<Activity*>(activity);
  done.simulation->end_work_before_flow();
  done.simulation->finish(done);
}

// Work that ends after a flow only because of rounding still comes first.
void Simulation::end_work_before_flow() {
  is_at_date_ = true;
  const bool has_ended = end_work();
  is_at_date_ = false;
  if (has_ended) set_timer();
}

void Simulation::finish(Activity& activity) {
  ended_.clear();  // SimGrid's kernel has finished with the earlier ones
  const Then then = std::exchange(activity.then, nullptr);
  ended_.push_back(std::move(activity.handle));
  activity.handle = nullptr;
  free_.push_back(&activity);
  end(then);
}

// Work that shares a core, and flows, may end later than it seemed when they began.
void Simulation::end(const Then& then) {
  if (on_event_) on_event_();
  if (is_within(now_s())) then();
  --under_way_;
  if (under_way_ == 0 && on_idle_) on_idle_();
}

Simulation::Then Simulation::in_scheduled_order(Then then) {
  if (schedule_ == nullptr) return then;
  return [this, then = std::move(then)] {
    ++under_way_;
    due_.push_back(then);
    if (due_.size() > 1) return;
    Activity& turns = begin_activity([this] { take_turns(); });
    turns.handle = simgrid_compat::start_instant(any_host_, &turns);
  };
}

void Simulation::take_turns() {
  while (!due_.empty()) end(schedule_->take_one(due_));
}

}  // namespace tandem::sim
