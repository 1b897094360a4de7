// Computes the time of one kernel on a GPU from the figures of the device: matrix products by tiles and waves,
// convolutions by the algorithms of a library, everything else by the bytes that it moves. kernel_constants.h has the
// constants.
//
// Threads: any. Pure arithmetic.
#pragma once

#include "engine/base/kernel_shape.h"
#include "engine/sim/costs/kernel_constants.h"

namespace tandem::sim {

// The rate at which kernels of one element type run.
struct KernelRate {
  double flops_per_s = 0;       // the largest product's
  double element_bytes = 4;     // in memory
  bool is_matrix_unit = true;   // tensor or matrix cores; false: ordinary multiply-add units
  bool has_wide_loads = false;  // of products and attention: a thread loads several elements at a time
  double product_share = kernel_constants::kTrainingShare;  // of flops_per_s, that matrix products reach
};

class KernelCosts {
 public:
  struct Figures {
    int multiprocessors = 0;
    double clock_hz = 0;          // 0: not known
    double memory_bandwidth = 0;  // nominal, bytes/s
    double memory_latency_s = 0;  // 0: not known
  };
  explicit KernelCosts(const Figures& figures);

  // Bytes per second of a kernel that only streams elements of `element_bytes`.
  double bandwidth(double element_bytes) const;

  // Each includes the time in which the kernels start, less `charged_s`, which is charged elsewhere. memory_s() is for
  // kernels that move `bytes` together.
  double memory_s(double bytes, int kernels, double element_bytes, double charged_s = 0) const;
  // `bytes` counts operands and results once each. Convolutions reach kTrainingShare and load single elements, whatever
  // products do.
  double product_s(const ProductShape& product, double bytes, const KernelRate& rate, double charged_s = 0) const;
  double convolution_s(const ConvolutionShape& shape, KernelRate rate, double charged_s = 0) const;
  double attention_s(const AttentionShape& shape, double bytes, const KernelRate& rate, double charged_s = 0) const;

 private:
  double compute_s(const ProductShape& product, const KernelRate& rate) const;
  double tiled_s(const ProductShape& product, std::int64_t rows, std::int64_t columns, const KernelRate& rate) const;
  double implicit_gemm_s(const ConvolutionShape& shape, const KernelRate& rate, double charged_s) const;
  double winograd_s(const ConvolutionShape& shape, const KernelRate& rate, double charged_s) const;
  double transposes_s(const ConvolutionShape& shape, const KernelRate& rate) const;

  double multiprocessors_;
  double clock_hz_;
  double cache_bytes_per_s_;  // of one multiprocessor
  double streaming_bytes_per_s_;
  double elements_per_s_;  // at most, by the loads in flight
};

}  // namespace tandem::sim
