// Grouped sends and receives.
#include <algorithm>
#include <cmath>

#include "engine/sim/collectives/nccl/arithmetic.h"
#include "engine/sim/collectives/nccl/mechanism.h"

namespace tandem::sim::nccl {

Duration Mechanism::all_to_all(double bytes) const {
  const double k = clock_factor();
  const int n = machine_.total_gpus;
  const double part = bytes / n;
  const double parts_us = costs_.p2p_us + costs_.p2p_each_us * std::min(n, 64);
  const double large_us = costs_.p2p_large_us * rising(part, costs_.p2p_from, costs_.p2p_to);
  const double inside_us = us_at(part * (machine_.gpus - 1), peer_gbs(machine_.gpus));
  double transfer_us = inside_us;
  double network_us = 0;
  if (machine_.domains > 1) {
    transfer_us = std::max(inside_us, us_at(part * (n - machine_.gpus) * machine_.gpus, p2p_nic_gbs()));
    network_us = network_step_us(costs_.net_simple_us);
  }
  const double fixed_us = inside_step_us((costs_.launch_us + parts_us + large_us) * k) + network_us;
  return at_least_issue({fixed_us + transfer_us, transfer_us});
}

Duration Mechanism::send_receive(double bytes, bool over_network) const {
  const double k = clock_factor();
  const double large_us = costs_.send_large_us * rising(bytes, costs_.p2p_from, costs_.p2p_to);
  const double fixed_us = (costs_.launch_us + costs_.p2p_us + large_us) * k;
  if (over_network) {
    const double transfer_us = us_at(bytes, machine_.nic_gbs * costs_.nic_share);
    return {fixed_us + network_step_us(costs_.net_simple_us) + transfer_us, transfer_us};
  }
  const double transfer_us = us_at(bytes, one_way_gbs());
  return {inside_step_us(fixed_us) + transfer_us, transfer_us};
}

// Returns the rate at which a GPU can send to one other while nothing comes back.
double Mechanism::one_way_gbs() const {
  if (machine_.intra == Intra::pcie) return costs_.p2p_share_pcie * machine_.gpu_gbs;
  if (machine_.intra == Intra::staged) return costs_.pcie_one_way * machine_.gpu_gbs;
  if (machine_.intra == Intra::nvswitch) return machine_.gpu_wire_gbs;
  const double direct_gbs = machine_.mesh(0, 1) * machine_.mesh_wire_factor;
  return direct_gbs > 0 ? direct_gbs : graphs_.ring_wire_gbs;
}

// Returns the rate at which a GPU can send to `gpus` - 1 others of its domain together.
double Mechanism::peer_gbs(int gpus) const {
  if (machine_.intra == Intra::pcie) return costs_.p2p_share_pcie * machine_.gpu_gbs;
  if (machine_.intra == Intra::staged) return costs_.staged_pairs * machine_.gpu_wire_gbs;
  double wire_gbs = machine_.gpu_wire_gbs;
  if (machine_.intra == Intra::nvlink_mesh) {
    wire_gbs = 0;
    for (int other = 1; other < gpus; ++other) wire_gbs += machine_.mesh(0, other) * machine_.mesh_wire_factor;
    if (wire_gbs <= 0) wire_gbs = graphs_.ring_wire_gbs;  // over a third GPU
  }
  return (costs_.p2p_share - costs_.p2p_share_lost / gpus) * wire_gbs;
}

double Mechanism::p2p_nic_gbs() const {
  return machine_.nics * machine_.nic_gbs * costs_.nic_share;
}

}  // namespace tandem::sim::nccl
