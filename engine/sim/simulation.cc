#include "engine/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "topologies/base/error.h"

namespace tandem::sim {
namespace {

using simgrid_compat::s4u::Engine;

bool is_simulating = false;

// Restores the handler of Ctrl-C that SimGrid replaces: its own kills the process without unwinding.
class KeepInterruptHandler {
 public:
  KeepInterruptHandler() { sigaction(SIGINT, nullptr, &previous_); }
  ~KeepInterruptHandler() { sigaction(SIGINT, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

void start_engine(void (*ended)(void*)) {
  TANDEM_REQUIRE(!is_simulating, "two simulations at a time in one process");
  is_simulating = true;
  const KeepInterruptHandler keep;
  simgrid_compat::begin_engine(ended);
}

}  // namespace

Simulation::Simulation(const Topology& topology, std::span<const HostSpec> nodes, SeededSchedule* schedule)
    : schedule_(schedule) {
  start_engine(&Simulation::ended);
  platform_ = std::make_unique<Platform>(topology, nodes);
}

Simulation::~Simulation() {
  ended_.clear();
  activities_.clear();
  platform_.reset();
  delete Engine::get_instance();
  is_simulating = false;
}

Nanoseconds Simulation::now_ns() {
  return std::llround(now_s() * 1e9);
}

void Simulation::execute(NodeIndex node, double seconds, double alone_s, Then then) {
  if (seconds <= 0) return at(now_s() + alone_s, std::move(then));
  const double most_per_s = alone_s > seconds ? kHostSpeed * seconds / alone_s : 0;
  Activity& activity = begin_activity(in_scheduled_order(std::move(then)));
  activity.handle = simgrid_compat::start_exec(platform_->host(node), seconds * kHostSpeed, most_per_s, &activity);
}

void Simulation::at(double date_s, Then then) {
  Activity& activity = begin_activity(in_scheduled_order(std::move(then)));
  simgrid_compat::at(std::max(date_s, now_s()), [&activity] { activity.simulation->finish(activity); });
}

Simulation::Alarm Simulation::set_alarm(double date_s, Then then) {
  ++under_way_;
  return simgrid_compat::at(std::max(date_s, now_s()), [this, then = std::move(then)] {
    then();
    count_end();
  });
}

void Simulation::call_off(Alarm alarm) {
  simgrid_compat::remove(alarm);
  --under_way_;
}

Simulation::Activity& Simulation::start_flow(NodeIndex from, NodeIndex to, double bytes, double most_bytes_per_s,
                                             Then ended) {
  Activity& activity = begin_activity(std::move(ended));
  activity.handle =
      simgrid_compat::start_comm(platform_->host(from), platform_->host(to),
                                 static_cast<std::uint64_t>(std::llround(bytes)), most_bytes_per_s, &activity);
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
  done.simulation->finish(done);
}

void Simulation::finish(Activity& activity) {
  ended_.clear();  // earlier ones: the kernel has finished with them
  const Then then = std::exchange(activity.then, nullptr);
  if (activity.handle) ended_.push_back(std::move(activity.handle));
  activity.handle = nullptr;
  free_.push_back(&activity);
  then();
  count_end();
}

void Simulation::count_end() {
  --under_way_;
  if (under_way_ == 0 && on_idle_) on_idle_();
}

Simulation::Then Simulation::in_scheduled_order(Then then) {
  if (schedule_ == nullptr) return then;
  return [this, then = std::move(then)] {
    ++under_way_;
    due_.push_back(then);
    if (due_.size() == 1) simgrid_compat::at(now_s(), [this] { run_due(); });
  };
}

void Simulation::run_due() {
  while (!due_.empty()) {
    const Then then = schedule_->take_one(due_);
    then();
    count_end();
  }
}

}  // namespace tandem::sim
