#include "engine/cuda/device/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/device.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

// If so many blocks of a size wait for other streams, any block that the GPU is done with is taken. Only programs that
// never order their streams come to this; otherwise they would take more and more memory.
constexpr std::size_t kMostWaiting = 8;

}  // namespace

bool DeviceBlock::note_use(StreamPoint point) {
  const auto known =
      std::find_if(uses_.begin(), uses_.end(), [&](StreamPoint use) { return use.stream == point.stream; });
  if (known == uses_.end()) {
    uses_.push_back(point);
    return true;
  }
  known->position = std::max(known->position, point.position);
  return false;
}

DeviceMemory::DeviceMemory(Device& device, Gpu& gpu, std::shared_ptr<const IssueOrder> order, int compute_stream)
    : device_(device), gpu_(gpu), pool_(gpu.memory()), order_(std::move(order)), compute_stream_(compute_stream) {}

std::shared_ptr<Buffer> DeviceMemory::take(std::size_t size_bytes) {
  Block block = find(size_bytes, compute_stream_);
  if (block == nullptr) return nullptr;
  return std::make_shared<DeviceBuffer>(shared_from_this(), std::move(block), size_bytes);
}

DeviceMemory::Block DeviceMemory::find(std::size_t size_bytes, int stream) {
  const std::size_t size = pool_->size_class(size_bytes);
  if (Block block = take_kept(size, stream); block != nullptr) return block;
  void* at = gpu_.take_when_settled(size);
  return at == nullptr ? nullptr : std::make_shared<DeviceBlock>(device_, pool_, at, size);
}

// The latest first: what was used last may still be in the GPU's cache.
DeviceMemory::Block DeviceMemory::take_kept(std::size_t size, int stream) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(size);
  if (found == kept_.end()) return nullptr;
  std::vector<Block>& blocks = found->second;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (order_->are_before(blocks[i]->uses_, stream)) return move_out(blocks, i);
  }
  if (blocks.size() < kMostWaiting) return nullptr;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].use_count() > 1) continue;
    blocks[i]->uses_.clear();
    return move_out(blocks, i);
  }
  return nullptr;
}

DeviceMemory::Block DeviceMemory::move_out(std::vector<Block>& blocks, std::size_t index) {
  Block block = std::move(blocks[index]);
  blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
  return block;
}

void DeviceMemory::keep(Block block) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) kept_[block->size_bytes()].push_back(std::move(block));
}

std::size_t DeviceMemory::settle() {
  const std::lock_guard lock(mutex_);
  std::size_t held = 0;
  for (auto& [size, blocks] : kept_) {
    std::erase_if(blocks, [](const Block& block) { return block.use_count() == 1; });
    held += blocks.size();
  }
  return held;
}

void DeviceMemory::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  kept_.clear();
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<DeviceMemory> memory, std::shared_ptr<DeviceBlock> block,
                           std::size_t size_bytes)
    : memory_(std::move(memory)), block_(std::move(block)), size_bytes_(size_bytes) {
  memory_->use_.add(size_bytes_);
}

DeviceBuffer::~DeviceBuffer() {
  memory_->use_.subtract(size_bytes_);
  memory_->keep(std::move(block_));
}

std::vector<StreamPoint> DeviceBuffer::note_use(StreamPoint point) {
  std::unique_lock lock(memory_->mutex_);
  if (!is_used_ && !memory_->order_->are_before(block_->uses_, point.stream)) change_block(point.stream, lock);
  if (!is_used_) block_->former_uses_ = std::exchange(block_->uses_, {});
  is_used_ = true;
  if (!block_->note_use(point) || block_->former_uses_.empty()) return {};
  return memory_->order_->not_before(block_->former_uses_, point.stream);
}

// Looks for a block without the lock, because the search may wait for the GPU.
void DeviceBuffer::change_block(int stream, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::shared_ptr<DeviceBlock> other = memory_->find(size_bytes_, stream);
  if (other == nullptr) {
    throw RunError(fmt::format("{}: no memory for a tensor of {} bytes whose first use is not on the compute stream",
                               device().id().text(), size_bytes_));
  }
  lock.lock();
  if (!is_used_) std::swap(block_, other);
  lock.unlock();
  memory_->keep(std::move(other));
  lock.lock();
}

}  // namespace tandem::cuda
