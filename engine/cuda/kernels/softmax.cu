#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

// In place, too: each lane writes only where it alone reads. NaN gets into the sum, and so into every element that is
// seen.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) softmax_of_rows(SoftmaxArguments arguments) {
  using W = Wide<T>;
  const W scale = static_cast<W>(arguments.scale);
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const T* a = static_cast<const T*>(arguments.a) + row * arguments.columns;
    T* to = static_cast<T*>(arguments.to) + row * arguments.columns;
    std::int64_t seen = arguments.columns;
    if (arguments.queries > 0) {
      const std::int64_t query = arguments.first_query + row % arguments.queries;
      if (query + 1 < seen) seen = query + 1;
    }
    W most = -std::numeric_limits<W>::infinity();
    for (std::int64_t c = Group::lane(); c < seen; c += Group::kThreads) {
      const W x = scale * load(a + c);
      most = most < x ? x : most;
    }
    most = Group::most_of(most);
    W sum = 0;
    for (std::int64_t c = Group::lane(); c < seen; c += Group::kThreads) sum += exp(scale * load(a + c) - most);
    const W inverse = 1 / Group::sum_of(sum);
    for (std::int64_t c = Group::lane(); c < arguments.columns; c += Group::kThreads) {
      store(to + c, c < seen ? exp(scale * load(a + c) - most) * inverse : W{0});
    }
  }
}

template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) softmax_gradient_of_rows(SoftmaxGradientArguments arguments) {
  using W = Wide<T>;
  const W scale = static_cast<W>(arguments.scale);
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const std::int64_t first = row * arguments.columns;
    const T* gradient = static_cast<const T*>(arguments.gradient) + first;
    const T* output = static_cast<const T*>(arguments.output) + first;
    T* to = static_cast<T*>(arguments.to) + first;
    W sum = 0;
    for (std::int64_t c = Group::lane(); c < arguments.columns; c += Group::kThreads) {
      sum += load(gradient + c) * load(output + c);
    }
    sum = Group::sum_of(sum);
    for (std::int64_t c = Group::lane(); c < arguments.columns; c += Group::kThreads) {
      store(to + c, scale * load(output + c) * (load(gradient + c) - sum));
    }
  }
}

}  // namespace

void launch_softmax(cudaStream_t stream, DType dtype, const SoftmaxArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(softmax_of_rows<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

void launch_softmax_gradient(cudaStream_t stream, DType dtype, const SoftmaxGradientArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(softmax_gradient_of_rows<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

}  // namespace tandem::cuda
