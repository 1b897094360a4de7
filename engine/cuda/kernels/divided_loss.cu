#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads)
    maxima_of_rows(T* __restrict__ maxima, const T* __restrict__ logits, std::int64_t rows, std::int64_t columns) {
  using W = Wide<T>;
  for (std::int64_t row = first_row<Group>(); row < rows; row += row_step<Group>()) {
    W most = -std::numeric_limits<W>::infinity();
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W x = load(logits + row * columns + c);
      most = most < x ? x : most;
    }
    most = Group::most_of(most);
    if (Group::lane() == 0) store(maxima + row, most);
  }
}

template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) exponential_sums_of_rows(ExponentialSumArguments arguments) {
  using W = Wide<T>;
  const std::int64_t columns = arguments.columns;
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const T* logits = static_cast<const T*>(arguments.logits) + row * columns;
    const W most = load(static_cast<const T*>(arguments.maxima) + row);
    W sum = 0;
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) sum += exp(load(logits + c) - most);
    sum = Group::sum_of(sum);
    if (Group::lane() != 0) continue;
    const std::int64_t column = arguments.labels[row] - arguments.first;
    store(static_cast<T*>(arguments.sums) + row, sum);
    store(static_cast<T*>(arguments.targets) + row,
          column >= 0 && column < columns ? load(logits + column) - most : W{0});
  }
}

// In place, too: each lane writes only where it alone reads.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) divided_gradients(DividedLossArguments arguments) {
  using W = Wide<T>;
  const std::int64_t columns = arguments.columns;
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const T* logits = static_cast<const T*>(arguments.logits) + row * columns;
    T* gradient = static_cast<T*>(arguments.gradient) + row * columns;
    const W most = load(static_cast<const T*>(arguments.maxima) + row);
    const auto sum = static_cast<double>(load(static_cast<const T*>(arguments.sums) + row));
    const W factor = static_cast<W>(arguments.gradient_scale / sum), one = static_cast<W>(arguments.gradient_scale);
    const std::int64_t column = arguments.labels[row] - arguments.first;
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W softmax = exp(load(logits + c) - most) * factor;
      store(gradient + c, c == column ? softmax - one : softmax);
    }
  }
}

// One block, whose threads take every kThreads-th row.
template <typename T>
__global__ void __launch_bounds__(kThreads) sum_divided_loss(DividedLossArguments arguments) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < arguments.rows; row += kThreads) {
    const auto of_row = static_cast<double>(load(static_cast<const T*>(arguments.sums) + row));
    sum += log(of_row) - static_cast<double>(load(static_cast<const T*>(arguments.targets) + row));
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) store(static_cast<T*>(arguments.loss), static_cast<Wide<T>>(arguments.loss_scale * sums[0]));
}

}  // namespace

void launch_row_maxima(cudaStream_t stream, DType dtype, void* maxima, const void* logits, std::int64_t rows,
                       std::int64_t columns) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(rows, columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(maxima_of_rows<T, Group>, blocks, threads, stream, static_cast<T*>(maxima), static_cast<const T*>(logits),
            rows, columns);
    });
  });
}

void launch_exponential_sums(cudaStream_t stream, DType dtype, const ExponentialSumArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(exponential_sums_of_rows<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

void launch_divided_loss(cudaStream_t stream, DType dtype, const DividedLossArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    if (arguments.loss != nullptr) start(sum_divided_loss<T>, 1, kThreads, stream, arguments);
    if (arguments.gradient == nullptr) return;
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(divided_gradients<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

}  // namespace tandem::cuda
