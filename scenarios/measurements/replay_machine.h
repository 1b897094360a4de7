// The machine that a measurement was made on, from the `topology` entry of its file (docs/validation.md).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem::validation {

struct ReplayMachine {
  std::string node{};  // of the catalog, or a file
  int nodes = 1;
  std::shared_ptr<const Topology> topology{};
  bool nics_stated = true;
  bool p2p_stated = true;
  bool power_limited = false;                 // below the catalog's machine
  std::string transport{};                    // of its network: "infiniband"; empty: unknown, or one node
  int devices_per_process = 1;                // several: one process drives several devices
  std::map<std::string, std::string> nccl{};  // EngineOptions::nccl: NCCL's variables, "version"

  int devices_per_node() const;
  // Returns EngineOptions::nccl for a job with `devices_per_node` devices on each node. `version` is NCCL's, unless the
  // entry states another; empty: unknown.
  std::map<std::string, std::string> nccl_of_job(int devices_per_node, const std::string& version = {}) const;
  // Returns "hgx-h100" or "hgx-h100, 2 nodes".
  std::string family() const;
};

// Reads the entry for a table with `devices` devices on `nodes` nodes (0: the entry's). Reports problems, such as a
// machine that is too small, and then returns nothing.
std::optional<ReplayMachine> read_replay_machine(const YamlReader& entry, int devices, int nodes);

}  // namespace tandem::validation
