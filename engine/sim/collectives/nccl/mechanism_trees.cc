// Trees, NVLS and CollNet.
#include <algorithm>
#include <cmath>

#include "engine/sim/collectives/nccl/arithmetic.h"
#include "engine/sim/collectives/nccl/mechanism.h"

namespace tandem::sim::nccl {

// Returns the bandwidth of all trees together: in a chain of n GPUs, n - 1 send the call's bytes up and n - 1 down.
double Mechanism::tree_gbs(Protocol protocol, const Call& call) const {
  double gbs = costs_.tree_share * graphs_.ring_wire_gbs;
  if (protocol == Protocol::ll128) gbs = std::min(gbs, ll128_share() * graphs_.ring_wire_gbs);
  if (protocol == Protocol::ll) gbs = (is_pcie() ? costs_.ll_share_pcie : costs_.ll_share) * graphs_.ring_wire_gbs;
  if (machine_.gpus > 1) gbs *= machine_.gpus / (2.0 * (machine_.gpus - 1));
  if (machine_.domains == 1) return std::min(gbs, table_.gbs({Algorithm::tree, protocol}, call) * 1.05);
  const double shares = protocol == Protocol::simple ? 1 : protocol == Protocol::ll128 ? 120.0 / 128 : 0.5;
  const double both_ways = machine_.domains == 2 ? 1 : 2;  // a node between others passes on what it receives
  const double nics_gbs = nic_gbs() * costs_.tree_nic_share * shares / both_ways;
  return machine_.gpus > 1 ? std::min(gbs, nics_gbs) : nics_gbs;
}

// Returns the bytes that a thread block sends together: calcCollChunking, src/enqueue.cc 2.27. `each`: of all it sends.
double Mechanism::tree_chunk(Protocol protocol, double each) const {
  if (protocol == Protocol::ll) return 32 * kKiB;
  if (protocol == Protocol::simple) return 512 * kKiB;
  const double gpus = machine_.total_gpus / static_cast<double>(machine_.domains);
  const double steps = 1 + std::ilogb(machine_.domains) + 0.1 * gpus;
  double chunk = 576000;
  const auto halve = [&](double chunks, double least) {
    while (std::floor(each / chunk) < steps * chunks / gpus && chunk > least) chunk /= 2;
  };
  halve(64, 128 * kKiB);
  halve(16, 32 * kKiB);
  return chunk;
}

Duration Mechanism::tree(Protocol protocol, const Call& call) const {
  const double k = clock_factor();
  const bool is_ll = protocol == Protocol::ll;
  const bool is_ll128 = protocol == Protocol::ll128;
  const double blocks = graphs_.thread_blocks;
  const double threshold = (is_ll ? 4 : is_ll128 ? 5 : 32) * kKiB;  // bytes for each thread block that is used
  const double each = call.bytes / std::clamp(std::ceil(call.bytes / threshold), 1.0, blocks);
  const int levels = machine_.domains > 1 ? std::ilogb(machine_.domains) : 0;
  const double chunk = std::min(each, tree_chunk(protocol, each));
  // With LL a GPU passes on what the threads of a block read together, 8 bytes each. Only NICs wait for whole chunks.
  const double stored = std::min(chunk, is_ll ? kLlThreads * 8 : chunk);
  const double step_us = k * (is_ll ? costs_.ll_step_us : is_ll128 ? costs_.tree_ll128_us : costs_.tree_slice_us);
  const double network_us = network_step_us(is_ll      ? costs_.net_ll_us
                                            : is_ll128 ? costs_.net_ll128_us
                                                       : costs_.net_simple_us);
  const double gbs = tree_gbs(protocol, call);
  const double hop_gbs = costs_.block_gbs / k * (is_ll ? 0.5 : 1);
  const double net_gbs = levels > 0 ? nic_gbs() / blocks * (is_ll ? 0.5 : 1) : hop_gbs;
  const double fill_us = 2 * ((machine_.gpus - 1) * (inside_step_us(step_us) + us_at(stored, hop_gbs)) +
                              levels * (network_us + us_at(chunk, net_gbs)));
  const double moving_us = fill_us + us_at(each - stored, gbs / blocks);
  return {costs_.launch_us * k + moving_us, std::min(moving_us, us_at(call.bytes, gbs))};
}

// Returns the bandwidth of NVLS. A head reduces what it reads from all GPUs, and its switch sends the result to all.
double Mechanism::nvls_gbs() const {
  const Graph& graph = graphs_.nvls;
  const double efficiency = machine_.capability >= 100 ? costs_.nvls_share_blackwell : costs_.nvls_share;
  const double ratio = machine_.total_gpus / (machine_.total_gpus - 1.0);
  const double inside = graph.channels * graph.intra_gbs * efficiency * (graph.channels - 1) / graph.channels * ratio;
  if (machine_.domains == 1) return inside;
  // Between two domains bytes go one way at a time; one between others passes on what it receives.
  return std::min(inside, machine_.domains == 2 ? nic_gbs() : costs_.tree_nic_share * nic_gbs() / 2);
}

Duration Mechanism::nvls(Algorithm algorithm, const Call& call) const {
  const double k = clock_factor();
  const bool is_tree = algorithm == Algorithm::nvls_tree;
  const double blocks = static_cast<double>(graphs_.nvls.channels) * graphs_.nvls_thread_blocks;
  double chunk = 128 * kKiB;  // calcCollChunking, src/enqueue.cc
  if (is_tree) {
    if (machine_.domains >= 4 || call.bytes < 64 * kMiB) chunk = 64 * kKiB;
    if (call.bytes < blocks * 64 * kKiB) chunk = 32 * kKiB;
  } else {
    if (call.bytes < 1024 * kMiB) chunk = 64 * kKiB;
    if (call.bytes < 64 * kMiB) chunk = 32 * kKiB;
    if (call.bytes < 8 * kMiB) chunk = 16 * kKiB;
  }
  const double round = blocks * chunk;
  const double gbs = nvls_gbs();
  const double round_us = std::max(
      costs_.nvls_round_us * k + us_at(round, costs_.nvls_round_share * machine_.gpu_wire_gbs), us_at(round, gbs));
  const double rounds = call.bytes / round;
  const double fill = std::min(is_tree ? costs_.nvls_tree_fill_rounds : costs_.nvls_fill_rounds, 1 + rounds);
  // A head reads through the switch, and writes through it: two steps before the first round ends.
  double total_us = inside_step_us(costs_.launch_us * k + machine_.link_us) + (rounds + fill) * round_us;
  if (is_tree) total_us += 2 * std::ilogb(machine_.domains) * (network_step_us(costs_.net_simple_us));
  return {total_us, us_at(call.bytes, gbs)};
}

Duration Mechanism::collnet(Choice choice, const Call& call) const {
  const double k = clock_factor();
  const double steps_us = 2 * (machine_.gpus - 1) * inside_step_us(costs_.tree_slice_us * k);
  const double transfer_us = us_at(call.bytes, std::min(table_.gbs(choice, call), costs_.tree_nic_share * nic_gbs()));
  const double network_us = 2 * (network_step_us(costs_.net_simple_us));
  return {costs_.launch_us * k + steps_us + network_us + transfer_us, transfer_us};
}

}  // namespace tandem::sim::nccl
