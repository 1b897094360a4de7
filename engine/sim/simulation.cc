#include "engine/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "topologies/base/error.h"

namespace tandem::sim {
namespace {

using simgrid_compat::s4u::Engine;

// A host's core does this many flops a second, so that an amount of work is its time in nanoseconds.
constexpr double kFlopsPerSecond = kHostSpeed;

bool is_simulating = false;

// SimGrid installs its own handler for Ctrl-C, which kills the process without unwinding.
class KeepInterruptHandler {
 public:
  KeepInterruptHandler() { sigaction(SIGINT, nullptr, &previous_); }
  ~KeepInterruptHandler() { sigaction(SIGINT, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

void start_engine(void (*ended)(void*)) {
  TANDEM_CHECK(!is_simulating, "two simulations at a time in one process");
  is_simulating = true;
  const KeepInterruptHandler keep;
  simgrid_compat::begin_engine(ended);
}

}  // namespace

Simulation::Simulation(const Topology& topology, std::span<const HostSpec> nodes, SeededSchedule* schedule)
    : schedule_(schedule) {
  start_engine(&Simulation::ended);
  platform_ = std::make_unique<Platform>(topology, nodes);
  flows_on_.resize(platform_->lane_count());
  bundle_on_.resize(platform_->lane_count());
}

Simulation::~Simulation() {
  bundle_on_.clear();
  ended_.clear();
  flights_.clear();
  platform_.reset();
  delete Engine::get_instance();
  is_simulating = false;
}

Nanoseconds Simulation::now_ns() {
  return std::llround(now_s() * 1e9);
}

void Simulation::execute(NodeIndex node, double seconds, double alone_s, Then then) {
  if (seconds <= 0) return at(now_s() + alone_s, std::move(then));
  const double most_per_s = alone_s > seconds ? kFlopsPerSecond * seconds / alone_s : 0;
  Flight& flight = take_flight(scheduled(std::move(then)));
  flight.activity = simgrid_compat::start_exec(platform_->host(node), seconds * kFlopsPerSecond, most_per_s, &flight);
}

// SimGrid would let a flow with a tenth of the latency have ten times the bandwidth of a shared link, as TCP does.
// Latency is therefore paid here, and SimGrid sees flows without any, which share links evenly.
void Simulation::transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then) {
  auto route = platform_->route(from, to);  // throws where there is none, before anything has begun
  if (bytes <= 0) {                         // nothing to carry: SimGrid would never report the end of such a flow
    at(now_s() + (with_latency ? route->latency_s : 0), std::move(then));
    return;
  }
  if (!with_latency || route->latency_s <= 0) {
    unbundle_on(*route);
    start_transfer(from, to, bytes, std::move(route), scheduled(std::move(then)));
    return;
  }
  const double begin_s = now_s() + route->latency_s;
  at(begin_s, [this, from, to, bytes, route = std::move(route), then = std::move(then)] {
    unbundle_on(*route);
    start_transfer(from, to, bytes, route, scheduled(then));
  });
}

void Simulation::at(double date_s, Then then) {
  Flight& flight = take_flight(scheduled(std::move(then)));
  simgrid_compat::at(std::max(date_s, now_s()), [&flight] { flight.simulation->finish(flight); });
}

Simulation::Alarm Simulation::set_alarm(double date_s, Then then) {
  ++in_flight_;
  return simgrid_compat::at(std::max(date_s, now_s()), [this, then = std::move(then)] {
    then();
    end_flight();
  });
}

void Simulation::call_off(Alarm alarm) {
  simgrid_compat::remove(alarm);
  --in_flight_;
}

void Simulation::run() {
  Engine::get_instance()->run();
}

Simulation::Flight& Simulation::take_flight(Then then) {
  ++in_flight_;
  if (free_.empty()) {
    flights_.emplace_back();
    free_.push_back(&flights_.back());
  }
  Flight& flight = *free_.back();
  free_.pop_back();
  flight.simulation = this;
  flight.then = std::move(then);
  return flight;
}

void Simulation::ended(void* flight) {
  if (flight == nullptr) return;
  auto& done = *static_cast<Flight*>(flight);
  done.simulation->finish(done);
}

void Simulation::finish(Flight& flight) {
  if (const auto route = std::exchange(flight.route, nullptr)) occupy(*route, -1);
  ended_.clear();  // of earlier activities: the kernel is through with them
  const Then then = std::move(flight.then);
  flight.then = nullptr;
  if (flight.activity) ended_.push_back(std::move(flight.activity));
  flight.activity = nullptr;
  free_.push_back(&flight);
  then();
  end_flight();
}

void Simulation::end_flight() {
  --in_flight_;
  if (in_flight_ == 0 && on_idle_) on_idle_();
}

// With a schedule, what an end brings about waits until everything else that ends at this instant has ended, too. The
// end itself (links, bundles) does not wait, because what starts meanwhile must find it done.
Simulation::Then Simulation::scheduled(Then then) {
  if (schedule_ == nullptr) return then;
  return [this, then = std::move(then)] {
    ++in_flight_;
    due_.push_back(then);
    if (due_.size() == 1) simgrid_compat::at(now_s(), [this] { run_due(); });
  };
}

void Simulation::run_due() {
  while (!due_.empty()) {
    const Then then = schedule_->take_one(due_);
    then();
    end_flight();
  }
}

}  // namespace tandem::sim
