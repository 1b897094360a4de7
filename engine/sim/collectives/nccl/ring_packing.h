// Finds rings and chains through the GPUs of a mesh of links: as many as the links can carry at a given speed.
#pragma once

#include <vector>

namespace tandem::sim::nccl {

// The order in which a ring or chain passes the GPUs of a group.
using Order = std::vector<int>;

// The capacity from each GPU to each other one, row by row. The first `members` of the `size` GPUs are to be visited,
// each once. Where two of them have no link left, a path may cross any third GPU, as NCCL's paths of type NVB do.
struct Mesh {
  int size = 0;
  int members = 0;
  std::vector<double> gbs{};
};

struct Packing {
  std::vector<Order> orders{};
  bool crosses_gpus = false;
};

// Finds at most `most` cycles (or, with `open`, paths) through all members, each of which takes `speed` from the
// capacity of its links. Finds the largest possible number on all meshes of up to eight GPUs that are built; elsewhere,
// the search is of bounded length. Deterministic.
Packing pack_rings(const Mesh& mesh, double speed, int most, bool open);

}  // namespace tandem::sim::nccl
