#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

// A thread a column takes the rows one after the other: an index may come twice.
template <typename T>
__global__ void scatter(bool replaces, Arithmetic operation, T* to, std::int64_t to_rows, const T* rows,
                        const std::int64_t* indices, std::int64_t count, std::int64_t width, Fault* fault) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; column < width;
       column += step) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = indices[i];
      if (row < 0 || row >= to_rows) {
        report(fault, Fault::row, i, row, to_rows);
        return;
      }
      T* at = to + row * width + column;
      const Wide<T> value = load(rows + i * width + column);
      store(at, replaces ? value : apply(operation, load(at), value, fault));
    }
  }
}

// In units of what block sizes, distances and addresses are all multiples of.
template <typename Unit>
__global__ void copy_units(Unit* to, const Unit* from, std::int64_t count, std::int64_t block, std::int64_t to_stride,
                           std::int64_t from_stride) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count * block;
       i += step) {
    to[i / block * to_stride + i % block] = from[i / block * from_stride + i % block];
  }
}

struct Blocks {
  void* to;
  const void* from;
  std::int64_t count, bytes, to_stride, from_stride;

  template <typename Unit>
  bool are_multiples() const {
    const auto all = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) |
                     static_cast<std::uintptr_t>(bytes | to_stride | from_stride);
    return all % sizeof(Unit) == 0;
  }
  template <typename Unit>
  void copy(cudaStream_t stream) const {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(Unit));
    start(copy_units<Unit>, blocks_for(count * bytes / kSize), kThreads, stream, static_cast<Unit*>(to),
          static_cast<const Unit*>(from), count, bytes / kSize, to_stride / kSize, from_stride / kSize);
  }
};

}  // namespace

void launch_scatter(cudaStream_t stream, DType dtype, bool replaces, Arithmetic operation, void* to,
                    std::int64_t to_rows, const void* rows, const std::int64_t* indices, std::int64_t count,
                    std::int64_t width, Fault* fault) {
  if (count * width == 0) return;
  with_type(dtype, [&]<typename T>() {
    start(scatter<T>, blocks_for(width), kThreads, stream, replaces, operation, static_cast<T*>(to), to_rows,
          static_cast<const T*>(rows), indices, count, width, fault);
  });
}

void launch_copy_blocks(cudaStream_t stream, void* to, const void* from, std::int64_t count, std::int64_t block_bytes,
                        std::int64_t to_stride, std::int64_t from_stride) {
  if (count * block_bytes == 0) return;
  const Blocks blocks{to, from, count, block_bytes, to_stride, from_stride};
  if (blocks.are_multiples<uint4>()) return blocks.copy<uint4>(stream);
  if (blocks.are_multiples<std::uint32_t>()) return blocks.copy<std::uint32_t>(stream);
  blocks.copy<unsigned char>(stream);
}

}  // namespace tandem::cuda
