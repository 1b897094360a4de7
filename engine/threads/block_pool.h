// A pool of memory blocks for reuse. Page faults, pinning and allocating on a GPU all cost more than most ops, so only
// the first step of a training run pays for them.
//
// Threads: any. Buffers keep their pool alive, so tensors may outlive their run (their device() does not).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tensor.h"

namespace tandem::threads {

// Where a pool gets its blocks.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual std::size_t alignment_bytes() const = 0;
  virtual void* allocate(std::size_t size_bytes) = 0;  // returns null when there is no room
  virtual void release(void* block, std::size_t size_bytes) noexcept = 0;
};

class BlockPool {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // `limit_bytes` bounds the blocks in use plus those kept.
  explicit BlockPool(std::unique_ptr<BlockSource> source, std::size_t limit_bytes = kNoLimit);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Returns a block of at least one byte, or null when there is no room even after releasing the blocks kept.
  void* take(std::size_t size_bytes);
  // Takes a block back. No work may still use it.
  void give_back(void* block, std::size_t size_bytes) noexcept;
  std::size_t limit_bytes() const { return limit_bytes_; }
  std::size_t size_class(std::size_t size_bytes) const;  // of the block that take() returns

 private:
  void* allocate(std::size_t size_bytes);
  void release_kept();

  const std::unique_ptr<BlockSource> source_;
  const std::size_t alignment_bytes_, limit_bytes_;
  std::mutex mutex_;  // guards the next two
  std::size_t reserved_bytes_ = 0;
  std::map<std::size_t, std::vector<void*>> kept_;  // by size class
};

// The memory of one device that its program has in use, and what it has taken so far.
struct MemoryUse {
  void add(std::size_t size_bytes);
  void subtract(std::size_t size_bytes) { in_use_bytes.fetch_sub(static_cast<std::int64_t>(size_bytes)); }

  std::atomic<std::int64_t> in_use_bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
  std::atomic<std::int64_t> allocations{0};
  std::atomic<std::int64_t> allocated_bytes{0};
};

// A block that goes back to its pool when neither the program nor work under way holds it.
class PooledMemory final : public Buffer {
 public:
  // Takes over `block`, which the pool gave out for `size_bytes`.
  PooledMemory(Device& device, std::shared_ptr<BlockPool> pool, void* block, std::size_t size_bytes,
               bool is_host_accessible);
  ~PooledMemory() override { pool_->give_back(block_, size_bytes_); }
  PooledMemory(const PooledMemory&) = delete;
  PooledMemory& operator=(const PooledMemory&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return block_; }
  bool is_host_accessible() const override { return is_host_accessible_; }

 private:
  Device& device_;
  const std::shared_ptr<BlockPool> pool_;
  void* const block_;
  const std::size_t size_bytes_;
  const bool is_host_accessible_;
};

// The same block as the program holds it: it counts as in use.
class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<PooledMemory> memory, std::shared_ptr<MemoryUse> use);
  ~PooledBuffer() override { use_->subtract(memory_->size_bytes()); }
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;

  Device& device() const override { return memory_->device(); }
  std::size_t size_bytes() const override { return memory_->size_bytes(); }
  void* data() const override { return memory_->data(); }
  bool is_host_accessible() const override { return memory_->is_host_accessible(); }
  std::shared_ptr<Buffer> memory() override { return memory_; }

 private:
  const std::shared_ptr<PooledMemory> memory_;
  const std::shared_ptr<MemoryUse> use_;
};

}  // namespace tandem::threads
