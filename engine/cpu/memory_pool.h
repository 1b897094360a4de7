// The memory behind every device of a cpu engine: blocks are kept for reuse, so that only the first step of a
// training run pays for page faults.
//
// Threads: any. Buffers keep the pool alive, so tensors may outlive their run (their device() does not).
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tensor.h"

namespace tandem::cpu {

class MemoryPool {
 public:
  // `limit_bytes`: of blocks in use and kept together.
  explicit MemoryPool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // 64-byte aligned, at least one byte. Null when the limit, or the operating system, has no room for it.
  void* take(std::size_t size_bytes);
  void give_back(void* block, std::size_t size_bytes) noexcept;
  std::size_t limit_bytes() const { return limit_bytes_; }

 private:
  void release_kept();

  const std::size_t limit_bytes_;
  std::mutex mutex_;
  std::size_t reserved_bytes_ = 0;
  std::map<std::size_t, std::vector<void*>> kept_;  // by size class
};

std::size_t physical_memory_bytes();

// What one device has in use.
struct MemoryUse {
  std::atomic<std::int64_t> in_use_bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
};

class CpuBuffer final : public Buffer {
 public:
  // Takes over `block`, which the pool gave out for `size_bytes`.
  CpuBuffer(Device& device, std::shared_ptr<MemoryPool> pool, std::shared_ptr<MemoryUse> use, void* block,
            std::size_t size_bytes);
  ~CpuBuffer() override;
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return block_; }
  bool is_host_accessible() const override { return true; }

 private:
  Device& device_;
  std::shared_ptr<MemoryPool> pool_;
  std::shared_ptr<MemoryUse> use_;
  void* block_;
  std::size_t size_bytes_;
};

}  // namespace tandem::cpu
