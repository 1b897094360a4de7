#include "engine/threads/block_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tandem::threads {

BlockPool::BlockPool(std::unique_ptr<BlockSource> source, std::size_t limit_bytes)
    : source_(std::move(source)), alignment_bytes_(source_->alignment_bytes()), limit_bytes_(limit_bytes) {}

BlockPool::~BlockPool() {
  release_kept();
}

// Rounds up to a multiple of the alignment; large blocks have eight classes per power of two, so that at most an eighth
// is wasted.
std::size_t BlockPool::size_class(std::size_t size_bytes) const {
  const std::size_t size = std::max<std::size_t>(size_bytes, 1);
  const std::size_t multiple = std::max(alignment_bytes_, std::bit_floor(size) / 8);
  return (size + multiple - 1) / multiple * multiple;
}

void* BlockPool::take(std::size_t size_bytes) {
  if (size_bytes > limit_bytes_) return nullptr;
  const std::size_t size = size_class(size_bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    void* block = found->second.back();
    found->second.pop_back();
    return block;
  }
  if (void* block = allocate(size); block != nullptr) return block;
  release_kept();
  return allocate(size);
}

void* BlockPool::allocate(std::size_t size_bytes) {
  if (size_bytes > limit_bytes_ - reserved_bytes_) return nullptr;
  void* block = source_->allocate(size_bytes);
  if (block != nullptr) reserved_bytes_ += size_bytes;
  return block;
}

void BlockPool::give_back(void* block, std::size_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[size_class(size_bytes)].push_back(block);
}

void BlockPool::release_kept() {
  for (const auto& [size, blocks] : kept_) {
    for (void* block : blocks) source_->release(block, size);
    reserved_bytes_ -= size * blocks.size();
  }
  kept_.clear();
}

void MemoryUse::add(std::size_t size_bytes) {
  const auto bytes = static_cast<std::int64_t>(size_bytes);
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  const std::int64_t in_use = in_use_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = peak_bytes.load();
  while (peak < in_use && !peak_bytes.compare_exchange_weak(peak, in_use)) {
  }
}

PooledMemory::PooledMemory(Device& device, std::shared_ptr<BlockPool> pool, void* block, std::size_t size_bytes,
                           bool is_host_accessible)
    : device_(device),
      pool_(std::move(pool)),
      block_(block),
      size_bytes_(size_bytes),
      is_host_accessible_(is_host_accessible) {}

PooledBuffer::PooledBuffer(std::shared_ptr<PooledMemory> memory, std::shared_ptr<MemoryUse> use)
    : memory_(std::move(memory)), use_(std::move(use)) {
  use_->add(memory_->size_bytes());
}

}  // namespace tandem::threads
