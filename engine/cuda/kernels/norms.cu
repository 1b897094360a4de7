#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

// `statistics`: mean and inverse of each row.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) normalize_rows(NormArguments arguments) {
  using W = Wide<T>;
  const std::int64_t columns = arguments.columns;
  const W inverse_columns = W{1} / static_cast<W>(columns), epsilon = static_cast<W>(arguments.epsilon);
  const T *scale = static_cast<const T*>(arguments.scale), *shift = static_cast<const T*>(arguments.shift);
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const T* a = static_cast<const T*>(arguments.a) + row * columns;
    T* to = static_cast<T*>(arguments.to) + row * columns;
    W mean = 0, squares = 0;
    if (shift != nullptr) {
      for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) mean += load(a + c);
      mean = Group::sum_of(mean) * inverse_columns;
    }
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W difference = load(a + c) - mean;
      squares += difference * difference;
    }
    const W inverse = W{1} / sqrt(Group::sum_of(squares) * inverse_columns + epsilon);
    if (Group::lane() == 0) {
      static_cast<W*>(arguments.statistics)[2 * row] = mean;
      static_cast<W*>(arguments.statistics)[2 * row + 1] = inverse;
    }
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W x = (load(a + c) - mean) * inverse * load(scale + c);
      store(to + c, shift == nullptr ? x : x + load(shift + c));
    }
  }
}

// With g = gradient * scale and x the normalised row: to = inverse * (g - the mean of g - x * the mean of g * x). In
// place, too: each lane writes only where it alone reads.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads) normalize_gradient_of_rows(NormGradientArguments arguments) {
  using W = Wide<T>;
  const std::int64_t columns = arguments.columns;
  const W inverse_columns = W{1} / static_cast<W>(columns);
  const T* scale = static_cast<const T*>(arguments.scale);
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const T* gradient = static_cast<const T*>(arguments.gradient) + row * columns;
    const T* a = static_cast<const T*>(arguments.a) + row * columns;
    T* to = static_cast<T*>(arguments.to) + row * columns;
    const W mean = static_cast<const W*>(arguments.statistics)[2 * row];
    const W inverse = static_cast<const W*>(arguments.statistics)[2 * row + 1];
    W products = 0, gradients = 0;
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W g = load(gradient + c) * load(scale + c);
      products += g * ((load(a + c) - mean) * inverse);
      gradients += g;
    }
    products = Group::sum_of(products) * inverse_columns;
    gradients = arguments.is_centered ? Group::sum_of(gradients) * inverse_columns : W{0};
    for (std::int64_t c = Group::lane(); c < columns; c += Group::kThreads) {
      const W g = load(gradient + c) * load(scale + c), x = (load(a + c) - mean) * inverse;
      store(to + c, inverse * (g - gradients - x * products));
    }
  }
}

constexpr unsigned kTileColumns = 32, kTileRows = 16;  // a warp reads along a row

template <typename W>
struct ParameterSums {
  W scale, shift;
};

// Divides the rows into `splits` parts of `chunk` rows, the last one shorter: `parts` is [splits, width], of the
// columns from `begin`. A block sums a tile of columns of one part: each of its rows of threads every kTileRows-th row,
// then all of them together.
template <typename T>
__global__ void __launch_bounds__(kTileColumns* kTileRows, 1)
    sum_parameters(NormParameterArguments arguments, ParameterSums<Wide<T>>* parts, std::int64_t begin,
                   std::int64_t width, std::int64_t splits, std::int64_t chunk) {
  using W = Wide<T>;
  __shared__ ParameterSums<W> sums[kTileRows][kTileColumns];
  const unsigned lane = threadIdx.x / kTileColumns, place = threadIdx.x % kTileColumns;
  const std::int64_t tiles = (width + kTileColumns - 1) / kTileColumns;
  const W* statistics = static_cast<const W*>(arguments.statistics);
  for (std::int64_t tile = blockIdx.x; tile < splits * tiles; tile += gridDim.x) {
    const std::int64_t column = tile % tiles * kTileColumns + place, part = tile / tiles;
    const std::int64_t first = part * chunk, end = first + chunk < arguments.rows ? first + chunk : arguments.rows;
    ParameterSums<W> sum{0, 0};
    for (std::int64_t row = first + lane; row < end && column < width; row += kTileRows) {
      const std::int64_t at = row * arguments.columns + begin + column;
      const W gradient = load(static_cast<const T*>(arguments.gradient) + at);
      const W a = load(static_cast<const T*>(arguments.a) + at);
      sum.scale += gradient * ((a - statistics[2 * row]) * statistics[2 * row + 1]);
      sum.shift += gradient;
    }
    sums[lane][place] = sum;
    __syncthreads();
    for (unsigned half = kTileRows / 2; half > 0; half /= 2) {
      if (lane < half) {
        sums[lane][place].scale += sums[lane + half][place].scale;
        sums[lane][place].shift += sums[lane + half][place].shift;
      }
      __syncthreads();
    }
    if (lane == 0 && column < width) parts[part * width + column] = sums[0][place];
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    finish_parameters(NormParameterArguments arguments, const ParameterSums<Wide<T>>* parts, std::int64_t begin,
                      std::int64_t width, std::int64_t splits) {
  using W = Wide<T>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; column < width;
       column += step) {
    ParameterSums<W> sum{0, 0};
    for (std::int64_t part = 0; part < splits; ++part) {
      sum.scale += parts[part * width + column].scale;
      sum.shift += parts[part * width + column].shift;
    }
    T* of_scale = static_cast<T*>(arguments.of_scale) + begin + column;
    store(of_scale, arguments.accumulates ? load(of_scale) + sum.scale : sum.scale);
    if (arguments.of_shift == nullptr) continue;
    T* of_shift = static_cast<T*>(arguments.of_shift) + begin + column;
    store(of_shift, arguments.accumulates ? load(of_shift) + sum.shift : sum.shift);
  }
}

// As many columns at a time as the scratch memory has room for, in as many parts as fill the largest GPU and as there
// is room for: equal shapes give equal sums where there is memory for all of it.
template <typename T>
void launch_parameters(cudaStream_t stream, const Scratch& scratch, const NormParameterArguments& arguments) {
  constexpr std::int64_t kFull = 512, kShortestPart = 4 * kTileRows;
  using Sums = ParameterSums<Wide<T>>;
  if (scratch.at == nullptr) throw RunError("normalize_parameter_gradients: no memory for the parts of its sums");
  auto* parts = static_cast<Sums*>(scratch.at);
  const auto room = static_cast<std::int64_t>(scratch.bytes / sizeof(Sums));
  for (std::int64_t begin = 0; begin < arguments.columns; begin += room) {
    const std::int64_t width = arguments.columns - begin < room ? arguments.columns - begin : room;
    const std::int64_t tiles = (width + kTileColumns - 1) / kTileColumns;
    std::int64_t splits = kFull / tiles;
    if (splits > arguments.rows / kShortestPart) splits = arguments.rows / kShortestPart;
    if (splits > room / width) splits = room / width;
    if (splits < 1) splits = 1;
    start(sum_parameters<T>, static_cast<unsigned>(splits * tiles), kTileColumns * kTileRows, stream, arguments, parts,
          begin, width, splits, (arguments.rows + splits - 1) / splits);
    start(finish_parameters<T>, blocks_for(width), kThreads, stream, arguments, parts, begin, width, splits);
  }
}

}  // namespace

void launch_normalize(cudaStream_t stream, DType dtype, const NormArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(normalize_rows<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

void launch_normalize_gradient(cudaStream_t stream, DType dtype, const NormGradientArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() {
    with_group(arguments.rows, arguments.columns, [&]<typename Group>(unsigned blocks, unsigned threads) {
      start(normalize_gradient_of_rows<T, Group>, blocks, threads, stream, arguments);
    });
  });
}

void launch_normalize_parameter_gradients(cudaStream_t stream, const Scratch& scratch, DType dtype,
                                          const NormParameterArguments& arguments) {
  with_floating_type(dtype, [&]<typename T>() { launch_parameters<T>(stream, scratch, arguments); });
}

}  // namespace tandem::cuda
