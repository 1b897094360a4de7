#include <bit>

#include "engine/base/small_floats.h"
#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

__device__ float magnitude_of(float value) {
  return value < 0 ? -value : value;
}

// Raises a number that is not negative; those have the order of their bits. NaN is never larger.
__device__ void raise(float* maximum, float value) {
  int known = std::bit_cast<int>(*maximum);
  while (std::bit_cast<float>(known) < value) {
    const int found = atomicCAS(reinterpret_cast<int*>(maximum), known, std::bit_cast<int>(value));
    if (found == known) return;
    known = found;
  }
}

__global__ void __launch_bounds__(kThreads) raise_by_all(float* maximum, const float* a, std::int64_t count) {
  float most = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const float magnitude = magnitude_of(a[i]);
    most = most < magnitude ? magnitude : most;
  }
  most = WarpOfRow::most_of(most);
  if (WarpOfRow::lane() == 0) raise(maximum, most);
}

// Every element has the scale of the whole.
template <SmallFloat kFormat>
__global__ void __launch_bounds__(kThreads) quantise_alike(QuantiseArguments arguments, std::int64_t count) {
  const SmallFloatScale scale = small_float_scale<kFormat>(ScaleType::f32, *arguments.maximum, 0);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    arguments.to[i] = rounded_to<kFormat>(arguments.a[i], scale);
  }
}

// A block of elements: its place and its sides.
struct BlockPlace {
  std::int64_t first, rows, columns;
};

struct BlocksOfMatrix {
  std::int64_t down, across;
};

__host__ __device__ inline BlocksOfMatrix blocks_of(const QuantiseArguments& arguments) {
  return {(arguments.rows + arguments.block_rows - 1) / arguments.block_rows,
          (arguments.columns + arguments.block_columns - 1) / arguments.block_columns};
}

// Neighbouring numbers are neighbours in a row of blocks.
__device__ BlockPlace place_of(const QuantiseArguments& arguments, std::int64_t block) {
  const BlocksOfMatrix blocks = blocks_of(arguments);
  const std::int64_t column = block % blocks.across * arguments.block_columns;
  const std::int64_t row = block / blocks.across % blocks.down * arguments.block_rows;
  const std::int64_t matrix = block / blocks.across / blocks.down;
  const std::int64_t rows = arguments.rows - row, columns = arguments.columns - column;
  return {(matrix * arguments.rows + row) * arguments.columns + column,
          rows < arguments.block_rows ? rows : arguments.block_rows,
          columns < arguments.block_columns ? columns : arguments.block_columns};
}

template <SmallFloat kFormat>
__device__ SmallFloatScale scale_of_block(const QuantiseArguments& arguments, float most) {
  return small_float_scale<kFormat>(arguments.scale, most, arguments.maximum == nullptr ? 0 : *arguments.maximum);
}

// A group of threads has a block. In place, too: each writes only where it alone reads.
template <SmallFloat kFormat, typename Group>
__global__ void __launch_bounds__(kRowThreads) quantise_blocks(QuantiseArguments arguments, std::int64_t blocks) {
  for (std::int64_t block = first_row<Group>(); block < blocks; block += row_step<Group>()) {
    const BlockPlace place = place_of(arguments, block);
    const std::int64_t count = place.rows * place.columns;
    const auto at = [&](std::int64_t i) {
      return place.first + i / place.columns * arguments.columns + i % place.columns;
    };
    float most = 0;
    for (std::int64_t i = Group::lane(); i < count; i += Group::kThreads) {
      const float magnitude = magnitude_of(arguments.a[at(i)]);
      most = most < magnitude ? magnitude : most;
    }
    const SmallFloatScale scale = scale_of_block<kFormat>(arguments, Group::most_of(most));
    for (std::int64_t i = Group::lane(); i < count; i += Group::kThreads) {
      arguments.to[at(i)] = rounded_to<kFormat>(arguments.a[at(i)], scale);
    }
  }
}

// A thread has a block of one column, and its neighbour the next column.
template <SmallFloat kFormat>
__global__ void __launch_bounds__(kThreads) quantise_columns(QuantiseArguments arguments, std::int64_t blocks) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; block < blocks;
       block += step) {
    const BlockPlace place = place_of(arguments, block);
    const float* a = arguments.a + place.first;
    float* to = arguments.to + place.first;
    float most = 0;
    for (std::int64_t row = 0; row < place.rows; ++row) {
      const float magnitude = magnitude_of(a[row * arguments.columns]);
      most = most < magnitude ? magnitude : most;
    }
    const SmallFloatScale scale = scale_of_block<kFormat>(arguments, most);
    for (std::int64_t row = 0; row < place.rows; ++row) {
      to[row * arguments.columns] = rounded_to<kFormat>(a[row * arguments.columns], scale);
    }
  }
}

}  // namespace

void launch_raise_maximum(cudaStream_t stream, float* maximum, const float* a, std::int64_t count) {
  if (count == 0) return;
  constexpr std::int64_t kMostRaising = 512;  // blocks
  start(raise_by_all, blocks_for(count, kMostRaising), kThreads, stream, maximum, a, count);
}

void launch_quantise(cudaStream_t stream, const QuantiseArguments& arguments) {
  const BlocksOfMatrix each = blocks_of(arguments);
  const std::int64_t blocks = arguments.matrices * each.down * each.across;
  with_small_float(arguments.format, [&]<SmallFloat kFormat>() {
    if (arguments.scale == ScaleType::f32 && arguments.maximum != nullptr) {
      const std::int64_t count = arguments.matrices * arguments.rows * arguments.columns;
      start(quantise_alike<kFormat>, blocks_for(count), kThreads, stream, arguments, count);
    } else if (arguments.block_columns == 1) {
      start(quantise_columns<kFormat>, blocks_for(blocks), kThreads, stream, arguments, blocks);
    } else {
      with_group(blocks, arguments.block_rows * arguments.block_columns,
                 [&]<typename Group>(unsigned groups, unsigned threads) {
                   start(quantise_blocks<kFormat, Group>, groups, threads, stream, arguments, blocks);
                 });
    }
  });
}

}  // namespace tandem::cuda
