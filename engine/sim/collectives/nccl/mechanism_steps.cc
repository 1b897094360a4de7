// What single steps cost, for a simulation of every step.
#include "engine/sim/collectives/nccl/mechanism.h"

namespace tandem::sim::nccl {
namespace {

double of_protocol(Protocol protocol, double ll, double ll128, double simple) {
  if (protocol == Protocol::ll) return ll;
  return protocol == Protocol::ll128 ? ll128 : simple;
}

}  // namespace

Mechanism::Latencies Mechanism::latencies(Choice choice) const {
  const Protocol protocol = choice.protocol;
  const double k = clock_factor();
  const bool is_ring = choice.algorithm == Algorithm::ring;
  double inside_us = costs_.nvls_round_us;
  if (is_ring) {
    const double ll_us = costs_.ll_step_us * (is_pcie() ? costs_.ll_pcie_factor : 1);
    inside_us = of_protocol(protocol, ll_us, costs_.ll128_step_us, costs_.slice_us);
  } else if (choice.algorithm == Algorithm::tree) {
    inside_us = of_protocol(protocol, costs_.ll_step_us, costs_.tree_ll128_us, costs_.tree_slice_us);
  }
  const double network_us =
      is_ring ? of_protocol(protocol, costs_.ring_net_ll_us, costs_.ring_net_ll128_us, costs_.ring_net_simple_us)
              : of_protocol(protocol, costs_.net_ll_us, costs_.net_ll128_us, costs_.net_simple_us);
  return {costs_.launch_us * k, inside_step_us(inside_us * k), network_step_us(network_us)};
}

}  // namespace tandem::sim::nccl
