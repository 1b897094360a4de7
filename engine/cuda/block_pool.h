// Memory kept for reuse: allocating on a GPU, and pinning host memory, cost more than a kernel.
//
// Threads: any. Buffers keep their pool alive, so tensors may outlive their run (their device() does not). No CUDA:
// where the memory comes from is the source's.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cpu/memory_pool.h"
#include "engine/device.h"

namespace tandem::cuda {

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual void* allocate(std::size_t size_bytes) = 0;  // null: there is no room
  virtual void release(void* block) noexcept = 0;
};

class BlockPool {
 public:
  explicit BlockPool(std::unique_ptr<BlockSource> source) : source_(std::move(source)) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // 256-byte aligned, at least one byte; null when there is no room even without the blocks kept.
  void* take(std::size_t size_bytes);
  // Nothing may still work on the block.
  void give_back(void* block, std::size_t size_bytes) noexcept;

 private:
  void release_kept();

  const std::unique_ptr<BlockSource> source_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> kept_;  // by size class
};

class CudaBuffer final : public Buffer {
 public:
  // Takes over `block`, which the pool gave out for `size_bytes`.
  CudaBuffer(Device& device, std::shared_ptr<BlockPool> pool, std::shared_ptr<cpu::MemoryUse> use, void* block,
             std::size_t size_bytes);
  ~CudaBuffer() override;
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return block_; }
  bool is_host_accessible() const override { return is_host_accessible_; }

 private:
  Device& device_;
  const bool is_host_accessible_;
  std::shared_ptr<BlockPool> pool_;
  std::shared_ptr<cpu::MemoryUse> use_;
  void* block_;
  std::size_t size_bytes_;
};

}  // namespace tandem::cuda
