// Chooses what NCCL chooses for a call: the algorithm and protocol that are cheapest by NCCL's own cost table, which
// are not always the fastest (NVIDIA/nccl src/graph/tuning.cc; src/enqueue.cc topoGetAlgoInfo).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/collective.h"
#include "engine/sim/collectives/nccl/channels.h"

namespace tandem::sim::nccl {

enum class Algorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree };
enum class Protocol : std::uint8_t { ll, ll128, simple };
inline constexpr int kAlgorithms = 6;
inline constexpr int kProtocols = 3;
inline constexpr int kKinds = static_cast<int>(CollectiveKind::send_receive) + 1;
// Versions as in Settings::version: the oldest one that the tables know, and the one since which NCCL has lists for
// single collectives and refuses what cannot run.
inline constexpr int kOldestVersion = 20500;
inline constexpr int kStrictVersion = 22400;
std::string_view name_of(Algorithm algorithm);  // "NVLS tree"
std::string_view name_of(Protocol protocol);    // "LL128"

// NCCL's variables, as NCCL reads them, and what else a user states about NCCL.
struct Settings {
  int version = 23007;  // 2.30.7: 10000 * major + 100 * minor + patch
  std::array<std::array<bool, kAlgorithms>, kKinds> algorithms = all_of<kAlgorithms>();  // those that are allowed
  std::array<std::array<bool, kProtocols>, kKinds> protocols = all_of<kProtocols>();
  std::array<bool, kKinds> forces_protocol{};  // NCCL_PROTO is set: it overrules what NCCL would not enable by itself
  int least_channels = 0;                      // 0: not set
  int most_channels = 0;
  int devices_per_process = 1;
  bool has_collnet = false;  // NCCL_COLLNET_ENABLE: the switches of an InfiniBand network reduce (SHARP)

 private:
  template <std::size_t count>
  static constexpr std::array<std::array<bool, count>, kKinds> all_of() {
    std::array<std::array<bool, count>, kKinds> all{};
    for (auto& row : all) row.fill(true);
    return all;
  }
};

// Reads NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS, NCCL_NVLS_ENABLE, NCCL_COLLNET_ENABLE, version
// and devices_per_process. Throws a UsageError that names the variable, its value, and what it may be.
Settings settings_of(const std::map<std::string, std::string>& variables);

struct Call {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;               // nccl-tests' definition: the larger of a rank's input and output
  bool reduces_in_switch = true;  // NVLS and SHARP can reduce the element type
};

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::ll;
  bool operator==(const Choice&) const = default;
};

// Bandwidth and latency that NCCL assigns to a choice; time = latency + bytes / (1000 * bandwidth).
struct Cost {
  double latency_us = 0;
  double gbs = 0;  // of bytes of the call; 0: not possible
};

// The cost table of one group.
class CostTable {
 public:
  CostTable(const Machine& machine, const Graphs& graphs, const Settings& settings);

  // Returns microseconds by NCCL's table, or nothing where NCCL cannot or may not use the choice.
  std::optional<double> time_us(Choice choice, const Call& call) const;
  // Throws InputError where the settings leave nothing to choose.
  Choice choose(const Call& call) const;
  // The largest bandwidth that the table gives the choice.
  double gbs(Choice choice, const Call& call) const { return cost(choice, call.kind).gbs; }

 private:
  Cost cost(Choice choice, CollectiveKind kind) const;
  Cost ring(Protocol protocol, CollectiveKind kind) const;
  Cost tree(Protocol protocol) const;
  Cost nvls(Algorithm algorithm) const;
  Cost collnet(Algorithm algorithm) const;
  bool is_possible(Choice choice, const Call& call) const;
  bool enables_ll128(CollectiveKind kind) const;
  bool has_collnet() const { return settings_.has_collnet && machine_.domains > 1 && !machine_.lacks_sharp; }
  bool allows(Choice choice, CollectiveKind kind) const;
  double hardware_us(Algorithm algorithm, Protocol protocol) const;
  double network_us(Algorithm algorithm, Protocol protocol) const;
  double advertised_us() const;
  double rooted_us(Protocol protocol) const;

  const Machine& machine_;
  const Graphs& graphs_;
  const Settings& settings_;
};

}  // namespace tandem::sim::nccl
