// What decides how NCCL runs on a group of GPUs.
#pragma once

#include <string>
#include <vector>

#include "engine/sim/collectives/nccl/machine.h"
#include "topologies/topology.h"

namespace tandem::sim::nccl {

// A NIC of a domain, and the GPU that sends and receives through it.
struct Port {
  NodeIndex nic = 0;
  int gpu = 0;     // position
  double gbs = 0;  // of the NIC
};

struct Survey {
  Machine machine{};
  // The group's GPUs by domain, as positions in the surveyed list, each domain in the order of the group. The largest
  // domain comes first; `machine` describes it.
  std::vector<std::vector<int>> domains{};
  std::vector<std::vector<Port>> ports{};  // by domain; empty where one has no NIC of its own
  // By domain, how many of its ports, which come first, are the first choice of a GPU: all where the group has all
  // GPUs. Empty: all of every domain.
  std::vector<std::size_t> first_choices{};
  std::string transport{};  // of the network between domains; empty: not stated
  // Models of the links on the ways of steps, if any link of the topology has a latency that its kind usually does not
  // have; else empty.
  std::vector<const LinkModel*> with_latency{};
  int without_nvlink = -1;   // a GPU that lacks the links to NVSwitches that others of its domain have; -1: none
  bool hop_is_known = true;  // the latency that the network's software adds: stated, or none by the kind of network
  const LinkModel* assumed_hop = nullptr;  // a cable whose hop latency is assumed, and has a range
};

}  // namespace tandem::sim::nccl
