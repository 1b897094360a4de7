// Every constant of the NCCL model, each with its source or with what it was fitted to. One set for all machines.
//
// "tuning.cc 2.27" and the like are NVIDIA/nccl src/graph/tuning.cc at tag v2.27.5-1 (commit 3ea7eedf); others: 2.8.3
// 920dbe5b, 2.10.3 7e515921, 2.12.7 3c223c10, 2.18.3 ea383122, 2.19.1 f9c3dc25, 2.21.5 ab2b89c4, 2.23.4 68b54236,
// 2.30.7 5067397c. Rates are GB/s, times microseconds.
//
// *Fitted* are constants of the mechanism (struct Costs). The data: tests/validation, protocol in docs/collectives.md.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace tandem::sim::nccl {

inline constexpr double kKiB = 1024;
inline constexpr double kMiB = 1024 * kKiB;
inline constexpr double kLlThreads = 512;  // of a thread block, LL; src/include/device.h
// The chunk of a channel in broadcast and reduce, Simple; src/include/collectives.h.
inline constexpr double kRootedChunk = 512 * kKiB;
inline constexpr double kLl128Payload = 120.0 / 128;  // of an LL128 line, src/include/device.h

// Speeds that the search tries for a channel, fastest first; src/graph/search.cc 2.30.7.
inline constexpr std::array kIntraSpeeds = {40., 30., 20., 18., 15., 12., 10., 9., 7., 6., 5., 4., 3.};
inline constexpr std::array kIntraSpeedsHopper = {60., 50., 40., 30., 24., 20., 15., 12., 11., 6., 3.};
inline constexpr std::array kIntraSpeedsBlackwell = {90., 80., 70., 60., 50., 45., 40., 30., 24., 20., 19., 18.};
inline constexpr std::array kInterSpeeds = {48., 30., 28., 24., 20., 18., 15., 12., 10., 9.,
                                            7.,  6.,  5.,  4.,  3.,  2.4, 1.2, .24, .12};
inline constexpr std::array kInterSpeedsHopper = {48., 45., 42., 40., 30., 24., 22., 20., 17.5,
                                                  15., 12., 6.,  3.,  2.4, 1.2, .24, .12};
inline constexpr std::array kInterSpeedsBlackwell = {96., 86.,  80., 48., 45.1, 42., 40., 30., 24., 22.,
                                                     20., 17.5, 15., 12., 6.,   3.,  2.4, 1.2, .24, .12};
// ROCm/rccl src/graph/topo.h: one xGMI link of a gfx94x counts 48.
inline constexpr std::array kIntraSpeedsAmd = {48., 40., 30., 24., 20., 18., 15., 12., 10., 9., 7., 6., 5., 4., 3.};

// One NVLink by the lowest compute capability that has it. nccl: src/graph/topo.h 2.30.7; wire: the same, but 22 for
// SM70, the constant of 2.10 to 2.17, which the plateaus of a DGX-1 V100 reach (22.4 a ring); nominal: datasheets.
struct NvlinkUnit {
  int capability;
  double nccl_gbs, wire_gbs, nominal_gbs;
  int most;  // of one GPU
};
inline constexpr std::array kNvlinkUnits = {NvlinkUnit{100, 40.1, 40.1, 50, 18}, NvlinkUnit{90, 20.6, 20.6, 25, 18},
                                            NvlinkUnit{86, 12, 12, 14, 4},       NvlinkUnit{80, 20, 20, 25, 12},
                                            NvlinkUnit{70, 20, 22, 25, 6},       NvlinkUnit{0, 18, 18, 20, 4}};
// One xGMI link. nccl: ROCm/rccl src/graph/topo.h (MI200 36, GFX94X 48), gfx950 by its nominal rate; the wire carries
// as much (mi300x_x8_1node: 315.7 on seven rings of 48).
inline constexpr int kXgmiLinks = 7;  // of one GPU
struct XgmiUnit {
  double nccl_gbs, wire_gbs, nominal_gbs;
};
inline constexpr std::array<std::pair<std::string_view, XgmiUnit>, 3> kXgmiUnits = {
    {{"gfx90a", {36, 36, 50}}, {"gfx94", {48, 47, 64}}, {"gfx95", {57, 56, 76.5}}}};

// The share of NCCL's constant that rings reach where they cross a GPU (NVB): five GPUs of a DGX-1 V100 reach 37.2 on
// two rings of 20.
inline constexpr double kCrossingShare = 0.93;

inline constexpr int kMostChannels = 32;               // MAXCHANNELS, src/include/device.h
inline constexpr int kMostNvlsHeads = 32;              // NCCL_MAX_NVLS_ARITY, src/include/device.h
inline constexpr int kNvlsThreadBlocksHopper = 16;     // NVLS_NCHANNELS_SM90, src/transport/nvls.cc
inline constexpr int kNvlsThreadBlocksBlackwell = 24;  // NVLS_NCHANNELS_SM100, src/transport/nvls.cc 2.27

inline constexpr double kReferenceGhz = 1.41;  // boost clock of an A100
// From Blackwell on, steps do not get faster with the clock: b200x8_1node_vultr takes longer than an A100 would at the
// same number of steps.
inline constexpr int kFirstBlackwell = 100;

// Costs of the mechanism: what the hardware and NCCL's kernels take for what they do.
//
// [one node]: fitted together, least sum of |log(predicted / measured)|, on the all_reduce, all_gather and
// reduce_scatter rows of one-node tables of A100 (aic_a100_sxm_nccl_2_27_3, a100x*_nvlmesh_simllm) and H100
// (aic_h100_sxm_nccl_2_23, aic_h100_sxm_nccl_2_29_2, h100x8_1node_all_reduce_partial). [a2a]: on the alltoall rows of
// the aic_* files. [nodes]: set by the five tables of two nodes of the families dgx1_x16_2node_4xedr,
// a100_40_x16_2node_oci_roce, dgxa100_x16_2node_hdr_ring, h100x16_2node_ndr_dell and nebius. Others name their source.
// Microseconds hold at a clock factor of 1, which is that of an A100.
struct Costs {
  // Instructions follow the clock; below this factor (2 GHz) memory and links decide: L40S at 2.52 GHz is no faster
  // than H100 at 1.98 (aic_l40s_nccl_2_27_3, 2 GPUs).
  double least_clock_factor = 0.70;
  double launch_us = 7.4;  // [one node] from one call to the next, back to back, without any step
  double issue_us =
      4.2;  // one process that drives several GPUs, of each: v100x8_1node_dgx1_like, superbench, oci: 3.3 to 6

  // LL: a write with its flag, and the poll for it. More threads and channels wake as parts grow.
  double ll_step_us = 1.07;       // [one node]
  double ll_wide_once_us = 2.2;   // [one node]
  double ll_wide_step_us = 0.24;  // [one node]
  double ll_wide_from = 1536;     // bytes of a ring step; 8 B a thread and rank, src/include/comm.h
  double ll_wide_to = 8192;
  double ll_share = 0.34;       // [one node] of the wire; half of what crosses it is flags
  double ll_overlap = 1.9;      // [one node] of a step's latency and its bytes, see either()
  double ll_pcie_factor = 1.4;  // of a step over PCIe: v100pcie_x4_1node_bessemer
  double ll_share_pcie = 0.55;  // aic_l40s_nccl_2_27_3, 2 GPUs
  double ll_share_nics = 0.5;   // one GPU a node: half of what crosses the wire is flags; v100pcie_x2_2node_tcp
  // Before 2.21 NCCL used a channel for each 4 KiB of a rank (threadThresholds, src/include/comm.h).
  double ll_share_before = 0.19;  // vtrain_a100, a100x4_1node_stanage
  double ll_block_bytes_before = 4096;

  double ll128_step_us = 3.7;      // [one node]
  double ll128_share = 0.76;       // [one node] H100, of the wire
  double ll128_share_sm80 = 0.65;  // [one node] A100 alone reads from its peers, src/graph/paths.cc
  double ll128_overlap = 1.18;     // [one node]

  // Simple: each slice costs a wait, a barrier, a fence and a flag. The last call of a loop only receives.
  double slice_us = 8.9;          // [one node] of the slices of one chunk
  double slice_overlap = 1.16;    // [one node]
  double slice_overlap_gaps = 3;  // links are the limit, other channels fill the gaps: vtrain_v100, aic_l40s
  double tail = 0.41;             // [one node] of a chunk, once
  double tail_loop = 0.35;        // [one node] and in every loop

  // Networks: NCCL's own step latencies, src/graph/tuning.cc, where nothing else is said.
  double net_least_us = 5;    // NCCL's step of a tree, LL; what a plug-in adds comes on top: p4d_x16_2node_efa_dlami
  double net_ll_us = 7;       // [nodes] NCCL has 5
  double net_ll128_us = 12;   // [nodes] NCCL has 8.5
  double net_simple_us = 20;  // [nodes] NCCL has 14
  // NCCL's 2.7 only serves its choice: l40s_x2_2node_1gpu needs 4.8, l40s_x4_2node_2gpu 7, a tree likewise.
  double ring_net_ll_us = 6;
  double ring_net_ll128_us = 6;  // no less than LL takes
  double ring_net_simple_us = 14;
  double nic_share = 0.95;  // of the line rate: facts of section 3, 0.94 to 0.97
  double overlap_nics = 4;  // [nodes] NICs work beside thread blocks
  // Simple hides the cost of slices where NICs are the limit: mi300x_x16, mi355x_pollara, dgxa100_x16_2node_hdr_ring
  // and h200_x16_2node_gcp_a3ultra are nearest to 7 to 12 above 64 MiB. Not where other channels fill the gaps.
  double overlap_nics_simple = 8;

  double tree_ll128_us = 2.0;  // [nodes] a step, its copy not counted
  double tree_slice_us = 4.0;  // NCCL's own step of a tree, Simple
  double tree_share = 0.92;    // of the wire, src/graph/tuning.cc
  // src/graph/tuning.cc, plain trees; p4d_x16_2node_efa_dlami. NVLS trees of three and more nodes: h100x64_8node_ndr.
  double tree_nic_share = 0.85;
  double block_gbs = 12;  // of a thread block at a clock factor of 1: half a channel, perChMaxTreeBws of Ampere

  double rooted_share = 0.97;     // of the wire: a100x8_1node_superbench_broadcast and _reduce
  double rooted_chunks = 64;      // likewise
  double rooted_slice_us = 4.45;  // half of slice_us: a chunk is one slice, not two; src/include/collectives.h

  double nvls_share = 0.855;           // [one node] Hopper; src/graph/tuning.cc 2.30 has 0.85
  double nvls_share_blackwell = 0.74;  // src/graph/tuning.cc 2.30
  double nvls_round_us = 12.2;         // [one node]
  double nvls_fill_rounds = 1.6;       // [one node]
  double nvls_tree_fill_rounds = 2.7;  // [nodes]
  double nvls_round_share = 0.957;     // of the wire, of one round: aic_h100_sxm_nccl_2_29_2

  double p2p_us = 1.7;           // [a2a]
  double p2p_each_us = 0.77;     // [a2a] for each GPU of the group
  double p2p_large_us = 16.5;    // [a2a] more as parts grow from .. to
  double p2p_from = 18432;       // [a2a]
  double p2p_to = 9.4e6;         // [a2a]
  double send_large_us = 5;      // of one send: vidur_a100_dgx, two GPUs of one node
  double p2p_share = 0.863;      // [a2a] of the wire, less
  double p2p_share_lost = 0.29;  // [a2a] this, divided by the GPUs of a node
  double p2p_share_pcie = 0.93;  // of NCCL's constant for PCIe: aic_l40s_nccl_2_27_3, 2 GPUs

  double staged_pairs = 1.28;  // through memory of the host, of what a ring reaches: rtx2080ti_x2_1node_pcie_alltoall
  double pcie_one_way = 0.92;  // of NCCL's constant, one way, through memory of the host: rtx2080ti broadcast
};
inline constexpr Costs kCosts{};

// The share of NCCL's constants for PCIe that a ring reaches, which reads and writes at the same time.
// aic_l40s_nccl_2_27_3 with 2 GPUs 0.84, v100pcie_x4_1node_bessemer 0.78 to 0.93.
inline constexpr double kPcieShare = 0.85;
// The share of a link to the host's memory that a ring reaches which writes and reads there at the same time, among the
// GPUs that share the link: 0.67 on rtx2080ti_x2 (Gen3, two GPUs below one switch), 0.565 on rtx5090x4 (Gen5).
inline constexpr double kStagedShare = 0.6;
// And what it reaches where its GPUs are at different processors: a100pcie_x4_1node_sm02, 4.6 to 5.4. Kernels read the
// host's memory at 5.67 to 6.41 (microsoft/superbenchmark tests/data/gpu_copy_bw_performance.log).
inline constexpr double kStagedAcrossGbs = 5;

}  // namespace tandem::sim::nccl
