// The memory of a logical device, in the order of issue. A block that the program has given up is reused for a tensor
// if all work that may still use it is ordered before the tensor's first use. Addresses and memory in use thus depend
// on the program alone, not on when somebody notices that the GPU is done.
//
// A tensor has a block from the start, chosen for the compute stream. If its first use is on another stream, which may
// run before the block's former uses have ended, the tensor changes to a block that is free for that stream.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/device/gpu.h"
#include "engine/cuda/device/issue_order.h"
#include "engine/threads/block_pool.h"

namespace tandem::cuda {

// A block of a GPU, as work under way holds it. It goes back to the GPU's pool when nobody holds it.
class DeviceBlock final : public Buffer {
 public:
  DeviceBlock(Device& device, std::shared_ptr<threads::BlockPool> pool, void* at, std::size_t size_bytes)
      : device_(device), pool_(std::move(pool)), at_(at), size_bytes_(size_bytes) {}
  ~DeviceBlock() override { pool_->give_back(at_, size_bytes_); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return at_; }
  bool is_host_accessible() const override { return false; }

 private:
  friend class DeviceMemory;
  friend class DeviceBuffer;
  bool note_use(StreamPoint point);  // returns whether it is the stream's first

  Device& device_;
  const std::shared_ptr<threads::BlockPool> pool_;
  void* const at_;
  const std::size_t size_bytes_;
  // The latest use by each stream: for this tensor, and for the one before it. Guarded by the DeviceMemory's mutex.
  std::vector<StreamPoint> uses_, former_uses_;
};

class DeviceMemory final : public GpuUser, public std::enable_shared_from_this<DeviceMemory> {
 public:
  // `compute_stream` is the number of the device's compute stream.
  DeviceMemory(Device& device, Gpu& gpu, std::shared_ptr<const IssueOrder> order, int compute_stream);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns a buffer that counts as in use, or null when there is no room even after waiting for the GPU's users.
  std::shared_ptr<Buffer> take(std::size_t size_bytes);
  const threads::MemoryUse& use() const { return use_; }
  std::size_t settle() override;  // gives the GPU's pool the blocks that no work holds any more
  void close();                   // ends the run: no block is kept from now on

 private:
  friend class DeviceBuffer;
  using Block = std::shared_ptr<DeviceBlock>;

  Block find(std::size_t size_bytes, int stream);
  Block take_kept(std::size_t size, int stream);
  static Block move_out(std::vector<Block>& blocks, std::size_t index);
  void keep(Block block);

  Device& device_;
  Gpu& gpu_;
  const std::shared_ptr<threads::BlockPool> pool_;
  const std::shared_ptr<const IssueOrder> order_;
  const int compute_stream_;
  threads::MemoryUse use_;
  std::mutex mutex_;  // guards the next two, and the members of blocks and buffers that say so
  std::map<std::size_t, std::vector<Block>> kept_;  // by size, the latest last
  bool is_closed_ = false;
};

// A block as the program holds it. Its memory counts as in use until the program gives it up.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceMemory> memory, std::shared_ptr<DeviceBlock> block, std::size_t size_bytes);
  ~DeviceBuffer() override;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // Notes that work which uses the memory is issued to a stream. Returns what the stream must wait for first: former
  // uses of the block, if several streams use the tensor without any order between them. Throws RunError if the first
  // use needs another block and there is no room for one.
  std::vector<StreamPoint> note_use(StreamPoint point);

  Device& device() const override { return block_->device(); }
  std::size_t size_bytes() const override { return size_bytes_; }
  void* data() const override { return block_->data(); }  // may change until the first use
  bool is_host_accessible() const override { return false; }
  std::shared_ptr<Buffer> memory() override { return block_; }

 private:
  void change_block(int stream, std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<DeviceMemory> memory_;
  std::shared_ptr<DeviceBlock> block_;  // guarded by the DeviceMemory's mutex until the first use
  const std::size_t size_bytes_;
  bool is_used_ = false;  // guarded by the same mutex
};

}  // namespace tandem::cuda
