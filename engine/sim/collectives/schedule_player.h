// Executes the schedule of a collective on the devices and the network of a run, at either fidelity.
#pragma once

#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/sim/collectives/collective_algorithm.h"
#include "engine/sim/sim_device.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

class CollectiveGroup;

class SchedulePlayer : public std::enable_shared_from_this<SchedulePlayer> {
 public:
  SchedulePlayer(SimRun& run, const CollectiveGroup& group, std::vector<SimDevice*> order, Schedule schedule,
                 Simulation::Then then)
      : run_(run), group_(group), order_(std::move(order)), schedule_(std::move(schedule)), then_(std::move(then)) {}

  // Called in the kernel. Calls `then` at the end; the player keeps itself alive until then.
  void start(CollectiveFidelity fidelity);

 private:
  void start_flows();
  void start_class_flows(const Simulation::Then& one_done);
  void end_flows();
  void start_step();
  void send(const Transfer& transfer, bool with_latency, Simulation::Then then);
  SimDevice& device(int position) const { return *order_[static_cast<std::size_t>(position)]; }

  SimRun& run_;
  const CollectiveGroup& group_;
  std::vector<SimDevice*> order_;
  Schedule schedule_;
  Simulation::Then then_;
  int step_ = 0;
  std::size_t left_ = 0;  // transfers under way
  std::vector<Transfer> transfers_;
  double slowest_latency_s_ = 0;
  double slowest_bytes_per_s_ = 0;
};

}  // namespace tandem::sim
