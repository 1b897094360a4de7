// NCCL's graphs: how many channels it finds on a machine, and how fast each is by NCCL's constants (NVIDIA/nccl 2.30.7
// src/graph/search.cc and connect.cc).
#pragma once

#include <vector>

#include "engine/sim/collectives/nccl/machine.h"
#include "engine/sim/collectives/nccl/ring_packing.h"

namespace tandem::sim::nccl {

struct Graph {
  int channels = 0;      // 0: the machine cannot do it
  double intra_gbs = 0;  // of one channel, inside a domain
  double inter_gbs = 0;  // of one channel, between domains
};

struct Graphs {
  Graph ring{};
  Graph tree{};
  Graph nvls{};
  Graph collnet{};
  int thread_blocks = 0;  // of each GPU: the compute channels of rings and trees
  int nvls_thread_blocks = 0;
  // In a mesh, the orders of the rings or, where several domains are joined, of the chains. Elsewhere rings pass the
  // GPUs in the order of the group.
  std::vector<Order> orders{};
  bool crosses_gpus = false;
  // All rings pass the GPUs in one order. Where several NICs are used they do not: each ring leaves a domain elsewhere.
  bool has_same_channels = true;
  // What all rings together carry on the wire: inside a domain, and through the NICs of a domain.
  double ring_wire_gbs = 0;
  double nic_wire_gbs = 0;
};

// `least` and `most` bound the compute channels: NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; 0: not set.
Graphs find_graphs(const Machine& machine, int least = 0, int most = 0);

}  // namespace tandem::sim::nccl
