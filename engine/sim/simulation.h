// SimGrid's clock and activities as callbacks: compute on a host, move bytes over a route, wait for a date.
//
// One Simulation at a time in a process. Everything here runs in SimGrid's kernel: call it inside in_kernel(),
// or from a callback. Callbacks must not throw; what can fail catches and reports to the run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/sim/platform.h"
#include "engine/sim/seeded_schedule.h"
#include "engine/sim/simgrid_compat.h"
#include "engine/timeline.h"

namespace tandem::sim {

class Simulation {
 public:
  using Then = std::function<void()>;

  // `nodes`: those that become hosts, with their number of cores. `schedule` orders what ends at one instant; null: the
  // order in which SimGrid finds it ended.
  Simulation(const Topology& topology, std::span<const HostSpec> nodes, SeededSchedule* schedule = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Platform& platform() { return *platform_; }
  // Called in the kernel whenever callbacks have run and nothing is under way.
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }

  static double now_s() { return simgrid_compat::s4u::Engine::get_clock(); }
  static Nanoseconds now_ns();

  // One core of the node's host for `seconds` of its undivided time; for `alone_s` where that is longer, during which
  // others may have what this leaves of the core.
  void execute(NodeIndex node, double seconds, double alone_s, Then then);
  void execute(NodeIndex node, double seconds, Then then) { execute(node, seconds, 0, std::move(then)); }
  // Bytes over the route between two nodes; its latency is paid first unless `with_latency` is false.
  void transfer(NodeIndex from, NodeIndex to, double bytes, bool with_latency, Then then);
  // The same number of bytes, without latency, between each of these pairs; `each` is called for every one. Those
  // alone on their links are simulated as one flow for as long as they stay alone, which changes no time.
  void transfer_together(std::span<const std::pair<NodeIndex, NodeIndex>> pairs, double bytes, const Then& each);
  void at(double date_s, Then then);
  // A date that may never be of interest: `then` is called at it unless the alarm is called off before, by something
  // that is itself under way. Under way like all the rest meanwhile, but not subject to the schedule.
  using Alarm = simgrid_compat::Timer*;
  Alarm set_alarm(double date_s, Then then);
  void call_off(Alarm alarm);

  bool is_busy() const { return in_flight_ > 0; }
  std::uint64_t transfer_count() const { return transfers_; }

  void run();

 private:
  struct Flight {
    Simulation* simulation = nullptr;
    Then then;
    simgrid_compat::s4u::ActivityPtr activity;
    std::shared_ptr<const Route> route;  // of a transfer
  };
  // Equal flows on links of their own, of which SimGrid sees the first.
  struct Bundle {
    std::vector<std::pair<NodeIndex, NodeIndex>> pairs;
    std::vector<std::shared_ptr<const Route>> routes;
    Then each;
    Flight* flight = nullptr;
  };
  using BundlePtr = std::shared_ptr<Bundle>;

  static void ended(void* flight);
  Flight& take_flight(Then then);
  Flight& start_transfer(NodeIndex from, NodeIndex to, double bytes, std::shared_ptr<const Route> route, Then then);
  void start_bundle(const BundlePtr& bundle, double bytes);
  void end_bundle(const BundlePtr& bundle);
  void unbundle(const BundlePtr& bundle);
  void unbundle_on(const Route& route);
  void occupy(const Route& route, int flows);
  void finish(Flight& flight);
  void end_flight();
  Then scheduled(Then then);
  void run_due();

  SeededSchedule* schedule_;
  std::vector<Then> due_;  // what has ended at this instant and awaits its turn
  std::unique_ptr<Platform> platform_;
  std::function<void()> on_idle_;
  std::deque<Flight> flights_;  // addresses stay
  std::vector<Flight*> free_;
  std::vector<simgrid_compat::s4u::ActivityPtr> ended_;  // the kernel still uses them while it reports their end
  std::vector<std::int32_t> flows_on_;                   // by lane
  std::vector<BundlePtr> bundle_on_;                     // by lane; of the bundles SimGrid sees as one flow
  std::int64_t in_flight_ = 0;
  std::uint64_t transfers_ = 0;
};

// Runs `call` in the kernel and returns when it has; usable from a task and from a callback.
template <typename Call>
void in_kernel(Call&& call) {
  simgrid_compat::in_kernel(std::forward<Call>(call));
}

}  // namespace tandem::sim
