#include "engine/cuda/kernels/device_types.cuh"
#include "engine/cuda/kernels/layer_kernels.h"

namespace tandem::cuda {
namespace {

constexpr std::int64_t kTurns = 256;  // angles of a row that a block computes together

// A block for each row. Angles are computed in f64, once for all heads.
template <typename T>
__global__ void __launch_bounds__(kThreads) turn_rows(RotaryArguments arguments) {
  using W = Wide<T>;
  __shared__ W cosines[kTurns];
  __shared__ W sines[kTurns];
  const std::int64_t half = arguments.width / 2, heads = arguments.columns / arguments.width;
  for (std::int64_t row = blockIdx.x; row < arguments.rows; row += gridDim.x) {
    const auto position = static_cast<double>(arguments.first + row % arguments.positions);
    const T* a = static_cast<const T*>(arguments.a) + row * arguments.columns;
    T* to = static_cast<T*>(arguments.to) + row * arguments.columns;
    for (std::int64_t begin = 0; begin < half; begin += kTurns) {
      const std::int64_t count = half - begin < kTurns ? half - begin : kTurns;
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const double exponent = -2 * static_cast<double>(begin + i) / static_cast<double>(arguments.width);
        const double angle = position * pow(arguments.base, exponent), sine = sin(angle);
        cosines[i] = static_cast<W>(cos(angle));
        sines[i] = static_cast<W>(arguments.backward ? -sine : sine);
      }
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < heads * count; i += blockDim.x) {
        const std::int64_t head = i / count, turn = i - head * count, at = head * arguments.width + begin + turn;
        const W x = load(a + at), y = load(a + at + half);
        store(to + at, x * cosines[turn] - y * sines[turn]);
        store(to + at + half, y * cosines[turn] + x * sines[turn]);
      }
    }
  }
}

}  // namespace

void launch_rotary(cudaStream_t stream, DType dtype, const RotaryArguments& arguments) {
  constexpr std::int64_t kMostBlocks = 65536;
  if (arguments.rows * arguments.columns == 0) return;
  const auto blocks = static_cast<unsigned>(arguments.rows < kMostBlocks ? arguments.rows : kMostBlocks);
  with_floating_type(dtype, [&]<typename T>() { start(turn_rows<T>, blocks, kThreads, stream, arguments); });
}

}  // namespace tandem::cuda
