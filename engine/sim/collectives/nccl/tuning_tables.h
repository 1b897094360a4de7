// The tables of NCCL's cost model by version, in microseconds and GB/s: NVIDIA/nccl src/graph/tuning.cc at the commits
// that constants.h names.
#pragma once

#include <array>
#include <span>

namespace tandem::sim::nccl {

struct Triple {
  double by_protocol[3];  // LL, LL128, Simple
};

// The part of the tables that changes with the version. An entry applies from its version on.
struct Latencies {
  int version;  // 10000 * major + 100 * minor + patch
  Triple base_tree, base_ring;
  Triple tree_nvlink, ring_nvlink, tree_pci, ring_pci, tree_net, ring_net;
  double base_nvls;
  double nvls_nvlink, nvls_net, nvls_tree_nvlink, nvls_tree_net;
  double collnet_direct_nvlink, collnet_chain_nvlink, collnet_direct_net, collnet_chain_net;
};

inline constexpr std::array kLatencies = {
    Latencies{20500,
              {4.4, 4.4, 0},
              {3.6, 3.6, 8.4},
              {.5, 1.9, 28},
              {.4, 2.5, 5.7},
              {1.0, 1.9, 28},
              {1.0, 2.5, 5.7},
              {5.0, 7.5, 50},
              {.9, 2.5, 6.6},
              0,
              0,
              0,
              0,
              0,
              4.0,
              4.0,
              10.7,
              10.7},
    Latencies{20800,
              {4.4, 4.4, 0},
              {3.6, 10.0, 8.4},
              {.52, 1.25, 28},
              {.47, 1.9, 3.4},
              {1.0, 1.9, 28},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 28},
              {2.7, 4.0, 9.6},
              0,
              0,
              0,
              0,
              0,
              4.0,
              4.0,
              10.7,
              10.7},
    Latencies{21200,
              {4.4, 4.4, 0},
              {3.6, 10.0, 8.4},
              {.52, 1.25, 28},
              {.47, 1.9, 3.4},
              {1.0, 1.9, 28},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 28},
              {2.7, 4.0, 28},
              0,
              0,
              0,
              0,
              0,
              8.0,
              8.0,
              10.7,
              10.7},
    Latencies{21800,
              {6.8, 14.0, 0},
              {6.6, 14.0, 8.4},
              {.6, 1.25, 4},
              {.6, 1.9, 3.4},
              {1.0, 1.9, 6},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 14},
              {2.7, 4.0, 14},
              23,
              0,
              18,
              0,
              19,
              8.0,
              4.75,
              10.7,
              14},
    Latencies{21900,
              {6.8, 14.0, 0},
              {6.6, 14.0, 8.4},
              {.6, 1.25, 28},
              {.6, 1.9, 3.4},
              {1.0, 1.9, 28},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 28},
              {2.7, 4.0, 14},
              0,
              23,
              18,
              23,
              14,
              3.7,
              2.8,
              31,
              30},
    Latencies{22100,
              {6.8, 14.0, 0},
              {6.6, 14.0, 8.4},
              {.6, 1.25, 28},
              {.6, 1.9, 3.4},
              {1.0, 1.9, 28},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 28},
              {2.7, 4.0, 14},
              0,
              25,
              18,
              25,
              14,
              3.7,
              2.8,
              31,
              30},
    Latencies{22300,
              {6.8, 14.0, 8.4},
              {6.6, 14.0, 8.4},
              {.6, 1.25, 4},
              {.6, 1.9, 3.4},
              {1.0, 1.9, 4},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 14},
              {2.7, 4.0, 14},
              0,
              25,
              18,
              25,
              14,
              3.7,
              2.8,
              31,
              30},
    Latencies{22800,
              {6.8, 14.0, 8.4},
              {6.6, 14.0, 8.4},
              {.6, 1.25, 4},
              {.6, 1.9, 3.4},
              {1.0, 1.9, 4},
              {1.0, 2.5, 5.7},
              {5.0, 8.5, 14},
              {2.7, 4.0, 14},
              0,
              25,
              18,
              25,
              20.9,
              3.7,
              2.8,
              31,
              30},
};

// Rows: Volta, Ampere, Hopper, Blackwell. Columns: one, two and more nodes.
using Caps = double[4][3];
inline constexpr Caps kLlMax = {{39, 39, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}};
inline constexpr Caps kLlMaxBefore220 = {{39, 39, 20.4}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}};
inline constexpr Caps kRingLl128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
inline constexpr Caps kTreeLl128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
inline constexpr Caps kTree = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};

// The share of its bandwidth that a tree reaches, by protocol and by the logarithm of bytes / 64; 2.10.3 and later.
inline constexpr double kTreeCorrection[3][24] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

}  // namespace tandem::sim::nccl
