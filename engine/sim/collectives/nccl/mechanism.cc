#include "engine/sim/collectives/nccl/mechanism.h"

#include <algorithm>
#include <cmath>

#include "engine/sim/collectives/nccl/arithmetic.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
Mechanism::Mechanism(const Machine& machine, const Graphs& graphs, const CostTable& table, const Settings& settings,
                     const Costs& costs)
    : machine_(machine), graphs_(graphs), table_(table), settings_(settings), costs_(costs) {}

double Mechanism::clock_factor() const {
  if (machine_.clock_ghz <= 0 || machine_.capability >= kFirstBlackwell) return 1;
  return std::max(costs_.least_clock_factor, kReferenceGhz / machine_.clock_ghz);
}

Mechanism::Steps Mechanism::steps(CollectiveKind kind) const {
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  return {rounds * (machine_.total_gpus - machine_.domains), rounds * (machine_.domains - 1)};
}

double Mechanism::nic_gbs() const {
  return std::min(machine_.nics, std::max(1, graphs_.ring.channels)) * machine_.nic_gbs * costs_.nic_share;
}

double Mechanism::ll_share() const {
  if (machine_.gpus == 1) return costs_.ll_share_nics;
  if (is_pcie()) return costs_.ll_share_pcie;
  return settings_.version < 22100 ? costs_.ll_share_before : costs_.ll_share;
}

double Mechanism::ll128_share() const {
  return machine_.capability == 80 ? costs_.ll128_share_sm80 : costs_.ll128_share;
}

// Returns the bandwidth of all rings together.
double Mechanism::wire_gbs() const {
  if (machine_.domains == 1) return graphs_.ring_wire_gbs;
  return machine_.gpus == 1 ? nic_gbs() : std::min(nic_gbs(), graphs_.ring_wire_gbs);
}

bool Mechanism::is_pcie() const {
  return machine_.intra == Intra::pcie || machine_.intra == Intra::staged;
}

// Returns the time of a step inside a domain, `usual_us` over usual links.
double Mechanism::inside_step_us(double usual_us) const {
  return std::max(0.0, usual_us + machine_.link_us);
}

// Returns the time of a step over the network: `fast_us` over InfiniBand; the software of other networks adds to the
// least time of a message, and links to both.
double Mechanism::network_step_us(double fast_us) const {
  const double step_us = machine_.hop_us > 0 ? std::max(fast_us, costs_.net_least_us + machine_.hop_us) : fast_us;
  return std::max(0.0, step_us + machine_.wire_us);
}

Duration Mechanism::at_least_issue(Duration duration) const {
  if (settings_.devices_per_process > 1) {
    const double issue_us = costs_.issue_us * settings_.devices_per_process;
    duration.total_us = std::max(duration.total_us, issue_us + duration.transfer_us);
  }
  return duration;
}

// Returns the time of `steps` of `part` bytes each. A step inside costs `step_us` in addition to its copy; NICs work
// while thread blocks do. Every edge of a ring carries a part in each step, so that the slowest one delays all.
double Mechanism::steps_us(const Steps& steps, double part, const StepCost& cost) const {
  const double copy_us = us_at(part, cost.inside_gbs);
  const double inside_us = either(inside_step_us(cost.step_us), copy_us, cost.overlap);
  if (machine_.domains == 1) return steps.inside * inside_us;
  const double nic_us = us_at(part, cost.nic_gbs);
  const double slowest_us = machine_.gpus > 1 ? std::max(copy_us, nic_us) : nic_us;
  return steps.inside * either(inside_us, nic_us, cost.overlap_nics) +
         steps.between * either(cost.network_us, slowest_us, costs_.overlap_nics);
}

Duration Mechanism::ring_ll(const Steps& steps, double bytes) const {
  const double k = clock_factor();
  const double part = bytes / machine_.total_gpus;
  const double wide = is_pcie() || machine_.capability == 0 ? 0 : rising(part, costs_.ll_wide_from, costs_.ll_wide_to);
  double share = ll_share();
  if (settings_.version < 22100) {
    const double each = costs_.ll_block_bytes_before * machine_.total_gpus;
    share *= std::min(1.0, std::ceil(bytes / each) / graphs_.thread_blocks);
  }
  const StepCost cost{
      .step_us = (costs_.ll_step_us + costs_.ll_wide_step_us * wide) * k * (is_pcie() ? costs_.ll_pcie_factor : 1),
      .inside_gbs = share * graphs_.ring_wire_gbs,
      .nic_gbs = share * nic_gbs(),
      .network_us = network_step_us(costs_.ring_net_ll_us),
      .overlap = costs_.ll_overlap};
  const double fixed_us = (costs_.launch_us + costs_.ll_wide_once_us * wide) * k;
  return {fixed_us + steps_us(steps, part, cost), steps.all() * us_at(part, share * wire_gbs())};
}

Duration Mechanism::ring_ll128(const Steps& steps, double bytes) const {
  const double k = clock_factor();
  const double part = bytes / machine_.total_gpus;
  const StepCost cost{.step_us = costs_.ll128_step_us * k,
                      .inside_gbs = ll128_share() * graphs_.ring_wire_gbs,
                      .nic_gbs = kLl128Payload * nic_gbs(),
                      .network_us = network_step_us(costs_.ring_net_ll128_us),
                      .overlap = costs_.ll128_overlap};
  const double gbs = machine_.domains > 1 ? std::min(cost.inside_gbs, cost.nic_gbs) : cost.inside_gbs;
  return {costs_.launch_us * k + steps_us(steps, part, cost), steps.all() * us_at(part, gbs)};
}

Duration Mechanism::ring_simple(const Steps& steps, double bytes) const {
  const double k = clock_factor();
  const double part = bytes / machine_.total_gpus;
  const double loops = std::max(1.0, std::ceil(part / (graphs_.thread_blocks * 2 * kMiB)));
  const bool fills_gaps = (machine_.capability > 0 && machine_.capability < 80) || is_pcie();
  const StepCost cost{.step_us = costs_.slice_us * k,
                      .inside_gbs = graphs_.ring_wire_gbs,
                      .nic_gbs = nic_gbs(),
                      .network_us = network_step_us(costs_.ring_net_simple_us),
                      .overlap = fills_gaps ? costs_.slice_overlap_gaps : costs_.slice_overlap,
                      .overlap_nics = fills_gaps ? costs_.overlap_nics : costs_.overlap_nics_simple};
  const double tail_us =
      fills_gaps ? 0 : (costs_.tail + costs_.tail_loop * loops) * us_at(part / loops, graphs_.ring_wire_gbs);
  const double inside_us = loops * steps_us(steps, part / loops, cost) + tail_us;
  return {costs_.launch_us * k + cost.step_us + inside_us, steps.all() * us_at(part, wire_gbs())};
}

// The whole buffer passes every edge of the ring. Rings of one order hand on pieces, and a GPU is done with its part
// before later ones are, so that calls one after the other overlap. Rings of different orders wait for each other at
// the end of each call: every GPU stores a chunk before it sends it, and all of them add up.
Duration Mechanism::rooted(Protocol protocol, double bytes) const {
  const double k = clock_factor();
  const Steps edges{machine_.total_gpus - machine_.domains, machine_.domains - 1};
  double share = costs_.rooted_share;
  double step_us = costs_.rooted_slice_us;
  double network_us = costs_.ring_net_simple_us;
  double wide_us = costs_.rooted_slice_us;  // of the last GPU
  double chunk = std::min(bytes / costs_.rooted_chunks, graphs_.thread_blocks * 128 * kKiB);
  if (protocol == Protocol::ll) {
    share = ll_share();
    step_us = costs_.ll_step_us * (is_pcie() ? costs_.ll_pcie_factor : 1);
    network_us = costs_.ring_net_ll_us;
    wide_us = costs_.ll_wide_once_us * rising(bytes / machine_.total_gpus, costs_.ll_wide_from, costs_.ll_wide_to);
  } else if (protocol == Protocol::ll128) {
    share = ll128_share();
    step_us = costs_.ll128_step_us;
    network_us = costs_.ring_net_ll128_us;
    wide_us = 0;
  } else if (!graphs_.has_same_channels) {
    chunk = std::min(bytes, graphs_.thread_blocks * kRootedChunk);
  }
  // Data moves in one direction only, so staging through the host reaches the rate of PCIe.
  const double all_gbs = machine_.intra == Intra::staged ? costs_.pcie_one_way * machine_.gpu_gbs : wire_gbs();
  const double gbs = share * all_gbs;
  const double fill_us = edges.inside * inside_step_us(step_us * k) + edges.between * network_step_us(network_us) +
                         (edges.all() - 1) * us_at(chunk, gbs);
  const double transfer_us = us_at(bytes, gbs);
  return {(costs_.launch_us + wide_us) * k + fill_us + transfer_us, transfer_us};
}

Duration Mechanism::time(Choice choice, const Call& call) const {
  switch (choice.algorithm) {
    case Algorithm::tree:
      return at_least_issue(tree(choice.protocol, call));
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return at_least_issue(nvls(choice.algorithm, call));
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return at_least_issue(collnet(choice, call));
    case Algorithm::ring:
      break;
  }
  if (has_root(call.kind)) return at_least_issue(rooted(choice.protocol, call.bytes));
  const Steps all = steps(call.kind);
  if (choice.protocol == Protocol::ll) return at_least_issue(ring_ll(all, call.bytes));
  if (choice.protocol == Protocol::ll128) return at_least_issue(ring_ll128(all, call.bytes));
  return at_least_issue(ring_simple(all, call.bytes));
}

}  // namespace tandem::sim::nccl
