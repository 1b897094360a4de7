// All constants of the model of GPU kernels. They hold for every device; none is tuned to a single table.
//
// Fitted: kTrainingShare, kBandwidthShare and kElementsInFlight, together, on published one-GPU training throughputs of
// ResNet-50 and ResNeXt-101 on V100, A100, H100, H200, GH200 and B200 (DLPerf, NVIDIA DeepLearningExamples, Lambda).
// The optimum is flat and the three trade against each other: do not read them as measurements. They were not
// fitted to transformers. docs/workloads.md has the errors, tests/scenarios/training_rows_test.cc repeats them.
// docs/fidelity/constants.md has what comes out without each site.
#pragma once

#include <cstdint>

namespace tandem::sim::kernel_constants {

// The share of the largest GEMM's rate that the kernels of a training step reach.
inline constexpr double kTrainingShare = 0.85;
// The same for products of two-byte types since Ampere, whose loads do not pass through registers. Fitted to products
// on A100, H100 and B200 of over 0.1 ms (tests/validation/kernels): their median errors are then 5, 7 and 8 %.
inline constexpr double kProductShare = 0.95;
// The share of nominal memory bandwidth that streaming kernels reach when loads in flight do not limit them.
inline constexpr double kBandwidthShare = 0.80;
// Elements that one multiprocessor keeps in flight: by Little's law a kernel without wide loads, which fetch several
// elements at a time, cannot fill a fast memory. About one for each of the 2,048 threads.
inline constexpr double kElementsInFlight = 2500;
// What a thread of a kernel with wide loads takes at a time, if an element is smaller: on GPUs since Ampere, products
// of matrices and what follows them. Fitted to steps of transformers on A100, H100, H200 and B200 (2, 4 and 8 bytes
// were tried: B200 -31, -2 and +13 %, H100 -10, +5 and +9 %).
inline constexpr double kWideLoadBytes = 4;
// The largest product on ordinary multiply-add units, as a share of their peak: 14.8 of 15.7 TFLOPS in f32 on a V100,
// baidu-research/DeepBench results/train/DeepBench_NV_V100.xlsx.
inline constexpr double kMultiplyAddEfficiency = 0.94;
// Used where a device's model states no memory latency: that of an A100, arXiv:2402.13499.
inline constexpr double kMemoryLatency_s = 0.33e-6;

// The device time of a kernel beyond its work: start, first loads and last stores. Small kernels of DeepBench (V100).
inline constexpr double kProductStart_s = 1.5e-6;
inline constexpr double kMemoryStart_s = 2e-6;

// Bytes that one multiprocessor reads from the level-2 cache in a cycle: its port is 64 wide.
inline constexpr double kCacheBytesPerCycle = 64;
// Used where a device's model states no clock; the boost clocks of V100 to H100 are 1.41 to 1.83 GHz.
inline constexpr double kClock_hz = 1.5e9;

// How much longer a kernel takes beside a collective, whose kernel keeps some multiprocessors: 1.161 for a GEMM beside
// an all-reduce of 256 MiB over four A100, openfabric-systems/simllm a100_hardware_envelope_v1.
inline constexpr double kSlowdownByCollectives = 1.16;

// For devices that wait for one another in every step: the framework's own work around the collectives (copies into
// buckets, hooks) as a share of the kernels' time, and the standard deviation of the time of equal work. Fitted
// together to the one-node rows of fixed shape in tests/validation/training, without Lambda's; fitted on the
// convolutional networks alone or the transformers alone, they halve the errors of the other kind as well.
inline constexpr double kInStepOverhead = 0.02;
inline constexpr double kWorkSpread = 0.02;

// The same for quantised operands, whose peak is twice or four times that of two bytes, as a share of the rate that the
// largest GEMM of two bytes would have at that peak. Fitted to products of over 0.1 ms on H100 and B200, as above.
inline constexpr double kFp8Share = 0.75;
inline constexpr double kFp4Share = 0.5;

// Products whose operands have a scale for every 128 elements, as a share of the rate of those with one for a tensor,
// on GPUs without instructions for it: those before Blackwell, which computes them as mxfp8. What is left of NVIDIA's
// times of a block's products on an H200 (Transformer Engine, docs/examples/gemm_profiling: 16.785 ms with operands
// that are quantised already, 20.285 ms with tensors' scales, 22.882 ms with blocks') if quantising them takes 4.0625 /
// 6 of the time that it takes with a scale for each tensor, as its bytes do.
inline constexpr double kBlockScalesShare = 0.82;

// Attention whose scores stay on the chip. Its products reach this share of the largest GEMM's rate, and this part of
// the time for their exponentials is not hidden behind them; each query costs as many keys more as it takes to start
// and end a block of queries and to compute what the mask cuts through. Fitted together to forward passes on A100, H100
// and B200 (tests/validation/kernels). The backward pass was not fitted to: on an A100 it then is between the first and
// the second version of Dao's FlashAttention (arXiv:2307.08691, figures 5 and 6).
inline constexpr double kAttentionShare = 0.7;
inline constexpr double kExposedExponentials = 0.7;
inline constexpr double kMoreKeys = 200;
inline constexpr std::int64_t kQueriesTogether = 128;
// How many times as long the first version of FlashAttention, and that of Triton, take for both passes of long
// sequences: 92 and 172 TFLOPS with heads of 64, arXiv:2307.08691, figure 5.
inline constexpr double kFirstVersionSlowness = 1.85;
// One multiprocessor: NVIDIA CUDA C++ Programming Guide, throughput of arithmetic instructions, 8.0 and later.
inline constexpr double kExponentialsPerCycle = 16;

// The tiles of the output for which libraries have kernels.
struct Tile {
  std::int64_t rows, columns;
};
inline constexpr Tile kTiles[] = {{256, 256}, {256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
                                  {128, 64},  {64, 128},  {64, 64},   {64, 32},   {32, 64},  {32, 32}};
inline constexpr std::int64_t kMostSplits = 64;  // of a product's depth, when tiles are few

// Winograd's F(4x4, 3x3): 36 products of transformed tiles instead of 9 x 16 multiplications an output tile.
inline constexpr std::int64_t kWinogradTile = 4;
inline constexpr std::int64_t kWinogradProducts = 36;

// Tensor cores take at least this many channels of a group at a time: smaller groups are padded with zeros.
inline constexpr std::int64_t kGroupChannels = 32;

// The errors of predicted one-GPU training steps, over groups of one model, GPU, precision and software (V100, A100,
// H100 and H200; their convolutional networks were fitted to): tests/scenarios/training_rows_test.cc computes these
// figures from the published rows.
inline constexpr int kPublishedSteps = 86;
inline constexpr int kMedianErrorPercent = 6;
inline constexpr int kNineInTenPercent = 15;

}  // namespace tandem::sim::kernel_constants
