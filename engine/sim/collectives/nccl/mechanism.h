// Computes how long the algorithm and protocol that NCCL has chosen take: launch, steps, slices, and bytes on the wire.
// This is the time of what NCCL does, not the cost that it expects (selection.h).
#pragma once

#include "engine/sim/collectives/nccl/channels.h"
#include "engine/sim/collectives/nccl/constants.h"
#include "engine/sim/collectives/nccl/selection.h"

namespace tandem::sim::nccl {

// total_us consists of transfer_us, in which bytes move, and of a fixed part that nothing else can slow down.
struct Duration {
  double total_us = 0;
  double transfer_us = 0;
};

class Mechanism {
 public:
  Mechanism(const Machine& machine, const Graphs& graphs, const CostTable& table, const Settings& settings,
            const Costs& costs = kCosts);

  // The time of a collective.
  Duration time(Choice choice, const Call& call) const;
  // The time of grouped sends and receives, in which each GPU sends bytes / total_gpus to every other one.
  Duration all_to_all(double bytes) const;
  // The time of one send and its receive. `over_network`: between domains.
  Duration send_receive(double bytes, bool over_network) const;

  // What a call takes before its first step, and what a step costs beside its copy, inside a domain and between two.
  struct Latencies {
    double launch_us = 0;
    double inside_us = 0;
    double network_us = 0;
  };
  Latencies latencies(Choice choice) const;
  // The rate of the NICs that the channels of a domain use, together.
  double nic_gbs() const;

 private:
  struct Steps {
    int inside = 0;
    int between = 0;
    int all() const { return inside + between; }
  };
  struct StepCost {
    double step_us = 0;  // inside a domain, beside the copy
    double inside_gbs = 0;
    double nic_gbs = 0;
    double network_us = 0;                      // between domains
    double overlap = 1;                         // of a step's latency and its copy, see either()
    double overlap_nics = kCosts.overlap_nics;  // of thread blocks and NICs
  };
  Steps steps(CollectiveKind kind) const;
  double steps_us(const Steps& steps, double part, const StepCost& cost) const;
  double clock_factor() const;
  double wire_gbs() const;
  double tree_gbs(Protocol protocol, const Call& call) const;
  double tree_chunk(Protocol protocol, double each) const;
  double nvls_gbs() const;
  double peer_gbs(int gpus) const;
  double p2p_nic_gbs() const;
  double one_way_gbs() const;
  double ll_share() const;
  double ll128_share() const;
  double inside_step_us(double usual_us) const;
  double network_step_us(double fast_us) const;
  bool is_pcie() const;
  Duration rooted(Protocol protocol, double bytes) const;
  Duration ring_ll(const Steps& steps, double bytes) const;
  Duration ring_ll128(const Steps& steps, double bytes) const;
  Duration ring_simple(const Steps& steps, double bytes) const;
  Duration tree(Protocol protocol, const Call& call) const;
  Duration nvls(Algorithm algorithm, const Call& call) const;
  Duration collnet(Choice choice, const Call& call) const;
  // One process launches on its devices one after the other. Steps may be over before the last launch, bytes are not.
  Duration at_least_issue(Duration duration) const;

  const Machine& machine_;
  const Graphs& graphs_;
  const CostTable& table_;
  const Settings& settings_;
  const Costs& costs_;
};

}  // namespace tandem::sim::nccl
