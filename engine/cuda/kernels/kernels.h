// Launches of the engine's own kernels, as plain functions over device addresses that return immediately. Arguments
// have been checked (cuda_kernels.h). cudaGetLastError() reports a launch that failed.
//
// Arithmetic of f16 and bf16 is done in f32 and rounded once per element; integers wrap around.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "topologies/base/dtype.h"

namespace tandem::cuda {

// What a kernel found wrong in values that only the GPU sees, stored in host memory that the GPU writes. The first
// fault is kept.
struct Fault {
  enum Kind : int { none, division_by_zero, label, row };
  int kind = none;
  long long index = 0, value = 0, bound = 0;
};

// In the order of kernel::Binary.
enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide, maximum, minimum };

// Memory of the GPU for partial sums and for sorting, used in the stream's order. Null where there was no room.
inline constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
struct Scratch {
  void* at = nullptr;
  std::size_t bytes = 0;
};

void launch_fill(cudaStream_t stream, DType dtype, void* to, double value, std::int64_t count);
void launch_arithmetic(cudaStream_t stream, DType dtype, Arithmetic operation, void* to, const void* a, const void* b,
                       std::int64_t count, Fault* fault);
// to = alpha * a + beta * to; `to` is not read where beta is 0.
void launch_scale_add(cudaStream_t stream, DType dtype, void* to, const void* a, double alpha, double beta,
                      std::int64_t count);
// to = sqrt(a + inside) + outside, of floating types.
void launch_square_root(cudaStream_t stream, DType dtype, void* to, const void* a, double inside, double outside,
                        std::int64_t count);
void launch_relu(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t count);
void launch_relu_gradient(cudaStream_t stream, DType dtype, void* to, const void* gradient, const void* output,
                          std::int64_t count);
void launch_add_bias(cudaStream_t stream, DType dtype, void* to, const void* bias, std::int64_t rows,
                     std::int64_t columns);
void launch_cast(cudaStream_t stream, DType to_dtype, void* to, DType from_dtype, const void* from, std::int64_t count);

// a is [outer, length, inner], to is [outer, inner].
void launch_sum(cudaStream_t stream, const Scratch& scratch, DType dtype, void* to, const void* a, std::int64_t outer,
                std::int64_t length, std::int64_t inner);

// Logits of a floating type; `gradient` and `correct` may be null.
struct LossArguments {
  DType dtype, correct_dtype;
  void *loss, *gradient, *correct;
  const void* logits;
  const std::int32_t* labels;
  std::int64_t rows, classes;
  double loss_scale, gradient_scale;
};
void launch_loss(cudaStream_t stream, const Scratch& scratch, const LossArguments& arguments, Fault* fault);

// `count` rows of `width` elements: to[indices[i]] op= rows[i], or to[indices[i]] = rows[i] if `replaces`. Rows of one
// index are applied in their order. With `narrow_indices` the row is narrow_indices[i] - first, and those that `to`
// lacks are passed over.
struct ScatterArguments {
  DType dtype;
  bool replaces;
  Arithmetic operation;
  void* to;
  const void* rows;
  const std::int64_t* indices;
  std::int64_t to_rows, count, width;
  const std::int32_t* narrow_indices = nullptr;
  std::int64_t first = 0;
};
void launch_scatter(cudaStream_t stream, const Scratch& scratch, const ScatterArguments& arguments, Fault* fault);

// `count` blocks of `block_bytes`, at distances of to_stride and from_stride bytes.
void launch_copy_blocks(cudaStream_t stream, void* to, const void* from, std::int64_t count, std::int64_t block_bytes,
                        std::int64_t to_stride, std::int64_t from_stride);

// Copies between memory that does not overlap, in one launch.
inline constexpr int kMaxCopies = 128;
struct CopyArguments {
  void* to[kMaxCopies] = {};
  const void* from[kMaxCopies] = {};
  std::int64_t bytes[kMaxCopies] = {};
  int count = 0;
};
void launch_copies(cudaStream_t stream, const CopyArguments& arguments);

// Note the GPU's time in eight bytes of its memory, and wait until what was launched in between has taken `factor`
// times as long.
void launch_note_time(cudaStream_t stream, void* at);
void launch_hold_back(cudaStream_t stream, const void* noted, double factor);

// One rank's part of a collective on memory that this GPU reaches: the reduction of inputs[0 .. ranks), in that order,
// written to outputs[0 .. copies).
inline constexpr int kMaxReducedRanks = 32;
struct ReduceArguments {
  const void* inputs[kMaxReducedRanks] = {};
  void* outputs[kMaxReducedRanks] = {};
  int ranks = 0, copies = 0;
};
// `operation`: add, maximum or minimum.
void launch_reduce(cudaStream_t stream, DType dtype, Arithmetic operation, const ReduceArguments& arguments,
                   std::int64_t count);

}  // namespace tandem::cuda
