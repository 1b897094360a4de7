// The graph numbers: how many channels NCCL finds on a machine, and how fast each is by NCCL's constants
// (NVIDIA/nccl 2.30.7 src/graph/search.cc and connect.cc).
#pragma once

#include <vector>

#include "engine/sim/collectives/nccl/machine.h"
#include "engine/sim/collectives/nccl/ring_packing.h"

namespace tandem::sim::nccl {

struct Graph {
  int channels = 0;      // 0: the machine cannot do it
  double intra_gbs = 0;  // of one channel, inside a domain
  double inter_gbs = 0;  // and between domains
  double total_gbs() const { return channels * intra_gbs; }
};

struct Graphs {
  Graph ring{};
  Graph tree{};
  Graph nvls{};
  Graph collnet{};
  int thread_blocks = 0;  // of a GPU: compute channels of rings and trees
  int nvls_thread_blocks = 0;
  // In a mesh, the orders of the rings, or of the chains where several domains are joined. Otherwise rings pass the
  // GPUs in their own order.
  std::vector<Order> orders{};
  bool crosses_gpus = false;
  // The rings together on the wire inside a domain, and through the NICs of one.
  double ring_wire_gbs = 0;
  double nic_wire_gbs = 0;
};

// `least` and `most`: NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS, of the compute channels; 0: not set.
Graphs find_graphs(const Machine& machine, int least = 0, int most = 0);

}  // namespace tandem::sim::nccl
