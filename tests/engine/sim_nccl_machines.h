// Machines of published tables, as the NCCL model sees them.
#pragma once

#include <vector>

#include "engine/sim/collectives/nccl/plan.h"

namespace tandem::sim::nccl {

struct Pair {
  int a = 0;
  int b = 0;
  double gbs = 0;
};

inline Machine over_nodes(Machine machine, int gpus, int domains = 1, int nics = 0, double nic_gbs = 0) {
  machine.gpus = gpus;
  machine.domains = domains;
  machine.total_gpus = gpus * domains;
  machine.nics = nics;
  machine.nic_gbs = nic_gbs;
  return machine;
}

inline Machine switched(int capability, double gpu_gbs, double clock_ghz) {
  return {.capability = capability, .clock_ghz = clock_ghz, .gpu_gbs = gpu_gbs, .gpu_wire_gbs = gpu_gbs};
}

inline Machine meshed(int capability, int size, const std::vector<Pair>& pairs, double clock_ghz) {
  Machine machine{.capability = capability, .clock_ghz = clock_ghz, .intra = Intra::nvlink_mesh};
  machine.mesh_gbs.assign(static_cast<std::size_t>(size * size), 0);
  for (const Pair& pair : pairs) {
    machine.mesh_gbs[static_cast<std::size_t>(pair.a * size + pair.b)] = pair.gbs;
    machine.mesh_gbs[static_cast<std::size_t>(pair.b * size + pair.a)] = pair.gbs;
  }
  return machine;
}

inline Machine dgx_a100() {
  Machine machine = switched(80, 240, 1.41);
  machine.has_amd_host = true;
  return machine;
}

inline Machine hgx_h100() {
  return switched(90, 370.8, 1.98);
}

inline Machine hgx_b200() {
  return switched(100, 721.8, 1.965);
}

inline Machine dgx1_v100() {
  return meshed(70, 8,
                {{0, 1, 20},
                 {0, 2, 20},
                 {0, 3, 40},
                 {0, 4, 40},
                 {1, 3, 20},
                 {1, 2, 40},
                 {1, 5, 40},
                 {2, 6, 20},
                 {2, 3, 40},
                 {3, 7, 20},
                 {4, 5, 20},
                 {4, 6, 20},
                 {4, 7, 40},
                 {5, 7, 20},
                 {5, 6, 40},
                 {6, 7, 40}},
                1.53);
}

inline Machine a100_full_mesh() {
  return meshed(80, 4, {{0, 1, 80}, {0, 2, 80}, {0, 3, 80}, {1, 2, 80}, {1, 3, 80}, {2, 3, 80}}, 1.41);
}

inline Machine pcie(int capability, double gbs) {
  return {.capability = capability, .intra = Intra::pcie, .gpu_gbs = gbs, .gpu_wire_gbs = 0.85 * gbs};
}

}  // namespace tandem::sim::nccl
