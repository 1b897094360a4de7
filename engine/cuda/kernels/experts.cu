#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/map.cuh"
#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

// Whether element `one` of a row is larger than `other`, or equal and before it. NaN is larger than any number.
template <typename W>
__device__ bool is_larger(W x, std::int64_t one, W y, std::int64_t other) {
  const bool is_one_nan = x != x, is_other_nan = y != y;
  if (is_one_nan || is_other_nan) return is_one_nan && (!is_other_nan || one < other);
  return x > y || (x == y && one < other);
}

// A thread counts the elements that are larger than its own: experts are few.
template <typename T>
__global__ void __launch_bounds__(kThreads) keep_largest(T* __restrict__ to, const T* __restrict__ a, std::int64_t rows,
                                                         std::int64_t columns, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * columns;
       i += step) {
    const std::int64_t row = i / columns, column = i - row * columns;
    const Wide<T> mine = load(a + i);
    std::int64_t larger = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      larger += is_larger(load(a + row * columns + c), c, mine, column) ? 1 : 0;
    store(to + i, larger < count ? mine : Wide<T>{0});
  }
}

// In units of what rows are multiples of: `width` of them in a row.
template <typename Unit, typename T>
__global__ void __launch_bounds__(kThreads) dispatch(ExpertArguments arguments, std::int64_t width) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t count = arguments.experts * arguments.rows * width;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t of_all = i / width, column = i - of_all * width;
    const std::int64_t expert = of_all / arguments.rows, row = of_all - expert * arguments.rows;
    const Wide<T> weight = load(static_cast<const T*>(arguments.weights) + row * arguments.experts + expert);
    Unit unit(static_cast<const T*>(arguments.a), row * width + column);
    for (int k = 0; k < Unit::kElements; ++k) {
      const Wide<T> value = unit.at(k);
      unit.set(k, weight == 0 ? Wide<T>{0} : arguments.is_scaled ? weight * value : value);
    }
    unit.store_to(static_cast<T*>(arguments.to), i);
  }
}

template <typename Unit, typename T>
__global__ void __launch_bounds__(kThreads) combine(ExpertArguments arguments, std::int64_t width) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x, count = arguments.rows * width;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t row = i / width;
    Wide<T> sums[Unit::kElements]{};
    for (std::int64_t expert = 0; expert < arguments.experts; ++expert) {
      const Wide<T> weight = load(static_cast<const T*>(arguments.weights) + row * arguments.experts + expert);
      if (weight == 0) continue;
      const Unit unit(static_cast<const T*>(arguments.a), expert * count + i);
      for (int k = 0; k < Unit::kElements; ++k) sums[k] += arguments.is_scaled ? weight * unit.at(k) : unit.at(k);
    }
    Unit result;
    for (int k = 0; k < Unit::kElements; ++k) result.set(k, sums[k]);
    result.store_to(static_cast<T*>(arguments.to), i);
  }
}

// A group for each weight.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) weight_gradients(ExpertArguments arguments, const T* gradients) {
  const std::int64_t columns = arguments.columns, count = arguments.rows * arguments.experts;
  for (std::int64_t at = first_row<Group>(); at < count; at += row_step<Group>()) {
    const std::int64_t row = at / arguments.experts, expert = at - row * arguments.experts;
    const T* a = static_cast<const T*>(arguments.a) + (expert * arguments.rows + row) * columns;
    const T* gradient = gradients + row * columns;
    Wide<T> sum = 0;
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) sum += load(a + c) * load(gradient + c);
    sum = Group::sum_of(sum);
    const bool is_zero = load(static_cast<const T*>(arguments.weights) + at) == 0;
    if (Group::lane() == 0) store(static_cast<T*>(arguments.to) + at, is_zero ? Wide<T>{0} : sum);
  }
}

}  // namespace

void launch_largest_of_rows(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t rows,
                            std::int64_t columns, std::int64_t count) {
  if (rows * columns == 0) return;
  with_floating_type(dtype, [&]<typename T>() {
    start(keep_largest<T>, blocks_for(rows * columns), kThreads, stream, static_cast<T*>(to), static_cast<const T*>(a),
          rows, columns, count);
  });
}

void launch_dispatch_rows(cudaStream_t stream, DType dtype, const ExpertArguments& arguments) {
  if (arguments.experts * arguments.rows * arguments.columns == 0) return;
  with_floating_type(dtype, [&]<typename T>() {
    with_unit<T>(arguments.columns, {arguments.to, arguments.a}, [&]<typename Unit>() {
      const std::int64_t width = arguments.columns / Unit::kElements;
      start(dispatch<Unit, T>, blocks_for(arguments.experts * arguments.rows * width), kThreads, stream, arguments,
            width);
    });
  });
}

void launch_combine_rows(cudaStream_t stream, DType dtype, const ExpertArguments& arguments) {
  if (arguments.rows * arguments.columns == 0) return;
  with_floating_type(dtype, [&]<typename T>() {
    with_unit<T>(arguments.columns, {arguments.to, arguments.a}, [&]<typename Unit>() {
      const std::int64_t width = arguments.columns / Unit::kElements;
      start(combine<Unit, T>, blocks_for(arguments.rows * width), kThreads, stream, arguments, width);
    });
  });
}

void launch_expert_weight_gradients(cudaStream_t stream, DType dtype, const ExpertArguments& arguments,
                                    const void* gradient) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows * arguments.experts, arguments.columns,
               [&]<typename Group>(unsigned blocks, unsigned threads) {
                 start(weight_gradients<T, Group>, blocks, threads, stream, arguments, static_cast<const T*>(gradient));
               });
  });
}

}  // namespace tandem::cuda
