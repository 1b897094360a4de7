// Rings and chains through the GPUs of a mesh of links: as many as the links can carry at a speed.
#pragma once

#include <vector>

namespace tandem::sim::nccl {

// The order in which a ring or chain passes the GPUs of a group.
using Order = std::vector<int>;

// Capacity from one GPU to another, row by row. The first `members` of `size` GPUs are to be visited, each once; where
// two of them have no link left, a path may cross any third GPU, as NCCL's paths of type NVB do.
struct Mesh {
  int size = 0;
  int members = 0;
  std::vector<double> gbs{};
};

struct Packing {
  std::vector<Order> orders{};
  bool crosses_gpus = false;
};

// Finds cycles (or, with `open`, paths) through all members such that no link carries more of them than it has
// capacity for, each taking `speed`. At most `most`. Finds the largest number on the meshes of up to eight GPUs that
// are built; elsewhere a search of bounded length, deterministic.
Packing pack_rings(const Mesh& mesh, double speed, int most, bool open);

}  // namespace tandem::sim::nccl
