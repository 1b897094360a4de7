#include "engine/cuda/block_pool.h"

#include <algorithm>
#include <bit>

namespace tandem::cuda {
namespace {

// Multiples of the alignment, and for large blocks eight classes a power of two: at most an eighth is wasted.
std::size_t size_class(std::size_t size_bytes) {
  constexpr std::size_t kAlignmentBytes = 256;
  const std::size_t size = std::max<std::size_t>(size_bytes, 1);
  const std::size_t multiple = std::max(kAlignmentBytes, std::bit_floor(size) / 8);
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace

BlockPool::~BlockPool() {
  release_kept();
}

void* BlockPool::take(std::size_t size_bytes) {
  const std::size_t size = size_class(size_bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    void* block = found->second.back();
    found->second.pop_back();
    return block;
  }
  void* block = source_->allocate(size);
  if (block != nullptr) return block;
  release_kept();
  return source_->allocate(size);
}

void BlockPool::give_back(void* block, std::size_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[size_class(size_bytes)].push_back(block);
}

void BlockPool::release_kept() {
  for (const auto& [size, blocks] : kept_) {
    for (void* block : blocks) source_->release(block);
  }
  kept_.clear();
}

CudaBuffer::CudaBuffer(Device& device, std::shared_ptr<BlockPool> pool, std::shared_ptr<cpu::MemoryUse> use,
                       void* block, std::size_t size_bytes)
    : device_(device),
      is_host_accessible_(device.id().type == DeviceType::cpu),
      pool_(std::move(pool)),
      use_(std::move(use)),
      block_(block),
      size_bytes_(size_bytes) {
  const auto bytes = static_cast<std::int64_t>(size_bytes);
  const std::int64_t in_use = use_->in_use_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = use_->peak_bytes.load();
  while (peak < in_use && !use_->peak_bytes.compare_exchange_weak(peak, in_use)) {
  }
}

CudaBuffer::~CudaBuffer() {
  use_->in_use_bytes.fetch_sub(static_cast<std::int64_t>(size_bytes_));
  pool_->give_back(block_, size_bytes_);
}

}  // namespace tandem::cuda
