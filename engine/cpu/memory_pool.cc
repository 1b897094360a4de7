#include "engine/cpu/memory_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace tandem::cpu {
namespace {

constexpr std::size_t kAlignmentBytes = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

std::size_t round_up(std::size_t size, std::size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// Multiples of the alignment, and for large blocks eight classes a power of two: at most an eighth is wasted.
std::size_t size_class(std::size_t size_bytes) {
  const std::size_t size = size_bytes == 0 ? 1 : size_bytes;
  return round_up(size, std::max(kAlignmentBytes, std::bit_floor(size) / 8));
}

// Large blocks get huge pages where the system grants them: fewer page faults and TLB misses in long sweeps.
void* allocate_block(std::size_t size_bytes) {
  if (size_bytes < kHugePageBytes) return std::aligned_alloc(kAlignmentBytes, size_bytes);
  void* block = std::aligned_alloc(kHugePageBytes, round_up(size_bytes, kHugePageBytes));
  if (block != nullptr) madvise(block, size_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace

MemoryPool::~MemoryPool() {
  release_kept();
}

void* MemoryPool::take(std::size_t size_bytes) {
  if (size_bytes > limit_bytes_) return nullptr;
  const std::size_t size = size_class(size_bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
    void* block = found->second.back();
    found->second.pop_back();
    return block;
  }
  if (reserved_bytes_ + size > limit_bytes_) release_kept();
  if (reserved_bytes_ + size > limit_bytes_) return nullptr;
  void* block = allocate_block(size);
  if (block != nullptr) reserved_bytes_ += size;
  return block;
}

void MemoryPool::give_back(void* block, std::size_t size_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[size_class(size_bytes)].push_back(block);
}

void MemoryPool::release_kept() {
  for (auto& [size, blocks] : kept_) {
    for (void* block : blocks) std::free(block);
    reserved_bytes_ -= size * blocks.size();
  }
  kept_.clear();
}

std::size_t physical_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

CpuBuffer::CpuBuffer(Device& device, std::shared_ptr<MemoryPool> pool, std::shared_ptr<MemoryUse> use, void* block,
                     std::size_t size_bytes)
    : device_(device), pool_(std::move(pool)), use_(std::move(use)), block_(block), size_bytes_(size_bytes) {
  const auto bytes = static_cast<std::int64_t>(size_bytes);
  const std::int64_t in_use = use_->in_use_bytes.fetch_add(bytes) + bytes;
  std::int64_t peak = use_->peak_bytes.load();
  while (peak < in_use && !use_->peak_bytes.compare_exchange_weak(peak, in_use)) {
  }
}

CpuBuffer::~CpuBuffer() {
  use_->in_use_bytes.fetch_sub(static_cast<std::int64_t>(size_bytes_));
  pool_->give_back(block_, size_bytes_);
}

}  // namespace tandem::cpu
