#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {
namespace {

// In units of what block sizes, distances and addresses are all multiples of.
template <typename Unit, typename Index>
__global__ void __launch_bounds__(kThreads)
    copy_units(Unit* to, const Unit* from, Index count, Index block, std::int64_t to_stride, std::int64_t from_stride) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Index row = i / block, unit = i - row * block;
    to[row * to_stride + unit] = from[row * from_stride + unit];
  }
}

// Every count-th block works on the same copy, in the largest units that its addresses and size are multiples of.
__global__ void __launch_bounds__(kThreads) copy_several(CopyArguments arguments) {
  const int mine = static_cast<int>(blockIdx.x) % arguments.count;
  const std::int64_t blocks = gridDim.x / static_cast<unsigned>(arguments.count);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) / arguments.count * blockDim.x + threadIdx.x;
  const std::int64_t step = blocks * blockDim.x, bytes = arguments.bytes[mine];
  auto* to = static_cast<unsigned char*>(arguments.to[mine]);
  const auto* from = static_cast<const unsigned char*>(arguments.from[mine]);
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const std::int64_t wide = places % sizeof(uint4) == 0 ? bytes / static_cast<std::int64_t>(sizeof(uint4)) : 0;
  for (std::int64_t i = first; i < wide; i += step) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  for (std::int64_t i = wide * static_cast<std::int64_t>(sizeof(uint4)) + first; i < bytes; i += step) to[i] = from[i];
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
    const std::int64_t units = count * bytes / kSize;
    const auto start_with = [&](auto kernel) {
      start(kernel, blocks_for(units), kThreads, stream, static_cast<Unit*>(to), static_cast<const Unit*>(from), units,
            bytes / kSize, to_stride / kSize, from_stride / kSize);
    };
    if (fits_narrow(units)) {
      start_with(copy_units<Unit, NarrowIndex>);
    } else {
      start_with(copy_units<Unit, std::int64_t>);
    }
  }
};

}  // namespace

void launch_copies(cudaStream_t stream, const CopyArguments& arguments) {
  if (arguments.count == 0) return;
  constexpr std::int64_t kBytesOfBlock = kThreads * sizeof(uint4), kMostBlocks = 64;
  std::int64_t longest = 0;
  for (int i = 0; i < arguments.count; ++i) longest = longest < arguments.bytes[i] ? arguments.bytes[i] : longest;
  if (longest == 0) return;
  const std::int64_t blocks = (longest + kBytesOfBlock - 1) / kBytesOfBlock;
  start(copy_several, static_cast<unsigned>((blocks < kMostBlocks ? blocks : kMostBlocks) * arguments.count), kThreads,
        stream, arguments);
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
