#include "engine/sim/collectives/nccl/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sim/collectives/nccl/tuning_tables.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kSlowMiBAllReduce = 1.4;  // tuning.cc 2.18 and later: plateau of rings over nodes, Ampere and later
constexpr double kSlowMiBAllReduceBefore80 = 1.9;  // and before Ampere
constexpr int kAdvertisedVersion = 21200;          // ncclNetProperties_v5_t has a latency, that of 2.10.3 has none
constexpr int kC2cVersion = 22700;                 // ways over C2C count as near ones: PATH_P2C, src/graph/topo.h
constexpr double kPostIntelUs = 1.0;               // getNetOverhead, tuning.cc 2.18
constexpr double kPostAmdUs = 2.0;

std::size_t index(Protocol protocol) {
  return static_cast<std::size_t>(protocol);
}

double of(const Triple& triple, Protocol protocol) {
  return triple.by_protocol[index(protocol)];
}

const Latencies& latencies_of(int version) {
  const Latencies* found = &kLatencies.front();
  for (const Latencies& entry : kLatencies) {
    if (entry.version <= version) found = &entry;
  }
  return *found;
}

double cap(const Caps& caps, int row, const Machine& machine) {
  return caps[row][std::min(machine.domains, 3) - 1];
}

int generation_row(const Machine& machine) {
  if (machine.capability >= 100) return 3;
  if (machine.capability >= 90) return 2;
  return machine.capability >= 80 ? 1 : 0;
}

int floor_log2(double value) {
  return value < 1 ? -1 : std::ilogb(value);
}

int ring_steps(CollectiveKind kind, int ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return ranks - 1;
    default:
      return ranks;
  }
}

int ring_network_steps(CollectiveKind kind, int domains) {
  return kind == CollectiveKind::all_reduce ? 2 * (domains - 1) : domains - 1;
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::tree:
      return "tree";
    case Algorithm::ring:
      return "ring";
    case Algorithm::collnet_direct:
      return "CollNet direct";
    case Algorithm::collnet_chain:
      return "CollNet chain";
    case Algorithm::nvls:
      return "NVLS";
    case Algorithm::nvls_tree:
      return "NVLS tree";
  }
  TANDEM_UNREACHABLE("algorithm");
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return "LL";
    case Protocol::ll128:
      return "LL128";
    case Protocol::simple:
      return "Simple";
  }
  TANDEM_UNREACHABLE("protocol");
}

CostTable::CostTable(const Machine& machine, const Graphs& graphs, const Settings& settings)
    : machine_(machine), graphs_(graphs), settings_(settings) {}

// One step inside a domain.
double CostTable::hardware_us(Algorithm algorithm, Protocol protocol) const {
  const Latencies& table = latencies_of(settings_.version);
  const bool is_nvlink = machine_.intra == Intra::nvswitch || machine_.intra == Intra::nvlink_mesh;
  if (algorithm == Algorithm::ring) return of(is_nvlink ? table.ring_nvlink : table.ring_pci, protocol);
  return of(is_nvlink ? table.tree_nvlink : table.tree_pci, protocol);
}

double CostTable::advertised_us() const {
  return settings_.version >= kAdvertisedVersion ? machine_.advertised_us : 0;
}

// One step between domains; Simple also waits for a flush.
double CostTable::network_us(Algorithm algorithm, Protocol protocol) const {
  const Latencies& table = latencies_of(settings_.version);
  const bool is_ring = algorithm == Algorithm::ring && machine_.gpus > 1;  // one GPU a domain: as in the tree
  const double step_us = of(is_ring ? table.ring_net : table.tree_net, protocol);
  return step_us + advertised_us() * (protocol == Protocol::simple ? 2 : 1);
}

// The steps of broadcast and reduce: one, where all rings are alike.
double CostTable::rooted_us(Protocol protocol) const {
  const bool is_tree = protocol == Protocol::simple && !graphs_.has_same_channels;
  const Latencies& table = latencies_of(settings_.version);
  const Triple& network = is_tree ? table.tree_net : table.ring_net;
  const double step_us =
      machine_.domains > 1 ? of(network, protocol) : hardware_us(is_tree ? Algorithm::tree : Algorithm::ring, protocol);
  return graphs_.has_same_channels ? step_us : machine_.total_gpus * step_us;
}

Cost CostTable::ring(Protocol protocol, CollectiveKind kind) const {
  const Graph& graph = graphs_.ring;
  const int row = generation_row(machine_);
  double bus = graph.channels * (machine_.domains <= 2 ? graph.intra_gbs : graph.inter_gbs);
  if (protocol == Protocol::ll) {
    double factor = 0.5;
    if (settings_.version < 22100) {
      const bool is_slow = machine_.domains > 1 || kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce;
      factor = is_slow ? 1.0 / 4 : 1.0 / 3;
    }
    const Caps& caps = settings_.version < 22000 ? kLlMaxBefore220 : kLlMax;
    const int cap_row = machine_.domains == 1 ? row : (machine_.has_amd_host ? 1 : 0);
    bus = std::min(cap(caps, cap_row, machine_), bus * factor);
  } else if (protocol == Protocol::ll128) {
    const double share = machine_.gpus < 2 && settings_.version < 22300 ? 0.7 : 0.92;
    bus = std::min(bus * share, graph.channels * cap(kRingLl128, row, machine_));
  }
  const int steps = ring_steps(kind, machine_.total_gpus);
  Cost cost{of(latencies_of(settings_.version).base_ring, protocol), bus * machine_.total_gpus / steps};
  const double intra_us = hardware_us(Algorithm::ring, protocol);
  const double inter_us = network_us(Algorithm::ring, protocol);
  if (has_root(kind)) {
    cost.latency_us += rooted_us(protocol);
    return cost;
  }
  double step_us = intra_us;
  if (machine_.domains > 1) {
    const double post_us = (machine_.has_amd_host ? kPostAmdUs : kPostIntelUs) * (protocol == Protocol::simple ? 3 : 1);
    if (settings_.version >= 21800) step_us = std::max(step_us, post_us);
    if (settings_.version < 21800 && protocol == Protocol::ll) step_us *= 1.8;
  }
  const int network_steps = ring_network_steps(kind, machine_.domains);
  cost.latency_us += (steps - network_steps) * step_us + network_steps * inter_us;
  return cost;
}

Cost CostTable::tree(Protocol protocol) const {
  const Graph& graph = graphs_.tree;
  const int row = generation_row(machine_);
  const double speed = machine_.domains <= 2 ? graph.intra_gbs : graph.inter_gbs;
  double bus = std::min(graph.channels * speed * 0.92, graph.channels * cap(kTree, row, machine_));
  if (protocol == Protocol::ll) {
    const int cap_row = machine_.domains == 1 ? row : (machine_.has_amd_host ? 1 : 0);
    bus = std::min(bus / 3.8, cap(kLlMax, cap_row, machine_));
  } else if (protocol == Protocol::ll128) {
    const double share = machine_.domains == 1 ? 7.0 / 9 : 120.0 / 128;
    bus = std::min(bus * share, graph.channels * cap(kTreeLl128, row, machine_));
  }
  const double hops_us = (machine_.gpus - 1) * hardware_us(Algorithm::tree, protocol) +
                         floor_log2(machine_.domains) * network_us(Algorithm::tree, protocol);
  return {of(latencies_of(settings_.version).base_tree, protocol) + 2 * hops_us, bus / 2};
}

Cost CostTable::nvls(Algorithm algorithm) const {
  const Graph& graph = graphs_.nvls;
  const Latencies& table = latencies_of(settings_.version);
  Cost cost{table.base_nvls, 0};
  double speed = graph.intra_gbs;
  if (algorithm == Algorithm::nvls_tree) {
    speed = std::min(speed, machine_.domains <= 2 ? graph.inter_gbs : graph.inter_gbs / 2);
    cost.latency_us +=
        table.nvls_tree_nvlink + 2 * floor_log2(machine_.domains) * (table.nvls_tree_net + 2 * advertised_us());
  } else {
    cost.latency_us += table.nvls_nvlink;
  }
  if (settings_.version < 22800) {
    cost.gbs = graph.channels * speed * 5 / 6;
  } else {
    const double efficiency = machine_.capability >= 100 ? 0.74 : 0.85;
    const double ratio = static_cast<double>(machine_.total_gpus) / (2 * (machine_.total_gpus - 1));
    cost.gbs = graph.channels * speed * 2 * efficiency * (graph.channels - 1) / graph.channels * ratio;
  }
  return cost;
}

Cost CostTable::collnet(Algorithm algorithm) const {
  const Graph& graph = graphs_.tree;
  const Latencies& table = latencies_of(settings_.version);
  const double network_us = advertised_us() * 2;
  double bus = graph.channels * graph.intra_gbs;
  if (algorithm == Algorithm::collnet_chain) {
    return {2 * (machine_.gpus - 1) * table.collnet_chain_nvlink + table.collnet_chain_net + network_us, bus / 2};
  }
  double factor = static_cast<double>(machine_.gpus) / graph.channels;  // GPUs for each NIC
  factor -= (factor - 1) / 2;
  bus /= factor;
  if (machine_.capability >= 90) bus *= 0.85;
  const int others = machine_.gpus - 1;
  const double inside_us = 2 * (std::min(1, others) * table.collnet_direct_nvlink + others * 0.4);
  return {inside_us + table.collnet_direct_net + network_us, bus / 2};
}

Cost CostTable::cost(Choice choice, CollectiveKind kind) const {
  switch (choice.algorithm) {
    case Algorithm::tree:
      return tree(choice.protocol);
    case Algorithm::ring:
      return ring(choice.protocol, kind);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return collnet(choice.algorithm);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return nvls(choice.algorithm);
  }
  TANDEM_UNREACHABLE("algorithm");
}

// Before 2.24, an algorithm that cannot run was passed over: ring was never disabled for collectives other than
// all_reduce, and CollNet alone, without SHARP, was ignored (src/graph/tuning.cc, 2.17).
bool CostTable::allows(Choice choice, CollectiveKind kind) const {
  const auto of_kind = static_cast<std::size_t>(kind);
  if (!settings_.protocols[of_kind][index(choice.protocol)]) return false;
  const auto& allowed = settings_.algorithms[of_kind];
  const auto is_allowed = [&](Algorithm algorithm) { return allowed[static_cast<std::size_t>(algorithm)]; };
  if (is_allowed(choice.algorithm)) return true;
  if (settings_.version >= kStrictVersion) return false;
  if (kind != CollectiveKind::all_reduce) return choice.algorithm == Algorithm::ring;
  const bool ignores = !has_collnet() && !is_allowed(Algorithm::ring) && !is_allowed(Algorithm::tree) &&
                       !is_allowed(Algorithm::nvls) && !is_allowed(Algorithm::nvls_tree);
  return ignores && (choice.algorithm == Algorithm::ring || choice.algorithm == Algorithm::tree);
}

bool CostTable::enables_ll128(CollectiveKind kind) const {
  if (settings_.forces_protocol[static_cast<std::size_t>(kind)]) return true;
  const bool is_nvlink =
      machine_.gpus == 1 || machine_.intra == Intra::nvswitch || machine_.intra == Intra::nvlink_mesh;
  const int capability = machine_.capability;
  const bool is_tested =
      capability == 0 || capability == 70 || capability == 80 || capability == 90 || capability >= 100;
  const bool is_near = machine_.domains == 1 || machine_.nics_are_near ||
                       (machine_.nics_use_c2c && capability >= 90 && settings_.version >= kC2cVersion);
  return is_nvlink && is_tested && !machine_.lacks_ll128 && is_near;
}

bool CostTable::is_possible(Choice choice, const Call& call) const {
  const auto [algorithm, protocol] = choice;
  const bool is_all_reduce = call.kind == CollectiveKind::all_reduce;
  if (!allows(choice, call.kind)) return false;
  if (protocol == Protocol::ll128 && !enables_ll128(call.kind)) return false;
  const bool is_one = machine_.domains == 1;
  switch (algorithm) {
    case Algorithm::ring:
      return graphs_.ring.channels > 0;
    case Algorithm::tree:
      return is_all_reduce && graphs_.tree.channels > 0 && machine_.total_gpus > 2 - (is_one ? 1 : 0);
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return is_all_reduce && has_collnet() && protocol == Protocol::simple && call.reduces_in_switch &&
             graphs_.tree.channels > 0;
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      break;
  }
  return is_all_reduce && protocol == Protocol::simple && graphs_.nvls.channels > 0 && call.reduces_in_switch &&
         settings_.version >= 21700 && is_one == (algorithm == Algorithm::nvls);
}

std::optional<double> CostTable::time_us(Choice choice, const Call& call) const {
  if (!is_possible(choice, call)) return std::nullopt;
  auto [latency_us, gbs] = cost(choice, call.kind);
  if (gbs <= 0) return std::nullopt;
  const int logarithm = floor_log2(call.bytes / 64);
  if (choice.algorithm == Algorithm::tree && logarithm >= 0 && logarithm < 24) {
    gbs *= kTreeCorrection[index(choice.protocol)][logarithm];
  }
  const bool is_plateau = choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple &&
                          machine_.domains > 1 && call.kind == CollectiveKind::all_reduce &&
                          call.bytes / (static_cast<double>(graphs_.ring.channels) * machine_.total_gpus) >= 64;
  if (is_plateau) latency_us *= machine_.capability < 80 ? kSlowMiBAllReduceBefore80 : kSlowMiBAllReduce;
  return latency_us + call.bytes / (1000 * gbs);
}

Choice CostTable::choose(const Call& call) const {
  Choice best;
  double best_us = std::numeric_limits<double>::infinity();
  for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
    for (int protocol = 0; protocol < kProtocols; ++protocol) {
      const Choice choice{static_cast<Algorithm>(algorithm), static_cast<Protocol>(protocol)};
      const auto found_us = time_us(choice, call);
      if (!found_us || *found_us >= best_us) continue;
      best = choice;
      best_us = *found_us;
    }
  }
  if (std::isfinite(best_us)) return best;
  throw InputError({{.file = "",
                     .path = "",
                     .message = fmt::format("NCCL has no algorithm and protocol left for this {}: NCCL_ALGO and "
                                            "NCCL_PROTO exclude those it can use here",
                                            tandem::name_of(call.kind))}});
}

}  // namespace tandem::sim::nccl
