#include "tests/cuda_emulation/memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "tests/cuda_emulation/gpus.h"

namespace tandem::emulation {
namespace {

constexpr std::size_t kAlignment = 512, kMargin = 512;
constexpr std::size_t kMostRetired = 32U << 20;
constexpr unsigned char kUntouched = 0xFD;

struct Block {
  std::byte* at = nullptr;
  std::size_t size_bytes = 0;
  int gpu = kHost;
  bool is_live = true;
  bool counts = true;  // as a part of the GPU's memory
};

class Memory {
 public:
  void* allocate(int gpu, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    if (gpu != kHost && in_use(gpu) + size_bytes > machine().memory_bytes) return nullptr;
    const std::size_t whole = (size_bytes + kAlignment - 1) / kAlignment * kAlignment + 2 * kMargin;
    auto* begin = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
    if (begin == nullptr) return nullptr;
    std::memset(begin, kUntouched, whole);
    std::byte* at = begin + kMargin;
    std::memset(at, kRubbish, size_bytes);
    blocks_[at] = {.at = at, .size_bytes = size_bytes, .gpu = gpu};
    blocks_[at].counts = gpu != kHost;
    if (gpu != kHost) in_use(gpu) += size_bytes;
    return at;
  }

  bool release(std::byte* at) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(at);
    if (found == blocks_.end() || !found->second.is_live) return false;
    Block& block = found->second;
    check_margins(block);
    block.is_live = false;
    std::memset(at, kRubbish, block.size_bytes);
    if (block.counts) in_use(block.gpu) -= block.size_bytes;
    retired_.push_back(at);
    retired_bytes_ += block.size_bytes;
    while (retired_bytes_ > kMostRetired) forget_oldest();
    return true;
  }

  // With `at` in it, or null.
  const Block* find(const std::byte* at) const {
    auto next = blocks_.upper_bound(at);
    if (next == blocks_.begin()) return nullptr;
    const Block& block = std::prev(next)->second;
    return at < block.at + std::max<std::size_t>(block.size_bytes, 1) ? &block : nullptr;
  }

  bool may_reach(const Block& block, int gpu) const {
    return block.gpu == kHost || block.gpu == gpu ||
           (machine().peers_reach && has_let_in_[static_cast<std::size_t>(block.gpu)][static_cast<std::size_t>(gpu)]);
  }

  void let_in(int owner, int peer, bool may) {
    const std::lock_guard lock(mutex_);
    has_let_in_[static_cast<std::size_t>(owner)][static_cast<std::size_t>(peer)] = may;
  }

  void count_anew() {
    const std::lock_guard lock(mutex_);
    in_use_.fill(0);
    for (auto& [at, block] : blocks_) block.counts = false;
  }

  std::size_t& in_use(int gpu) { return in_use_[static_cast<std::size_t>(gpu)]; }
  std::mutex& mutex() { return mutex_; }

 private:
  static void check_margins(const Block& block) {
    const auto is_touched = [](std::byte byte) { return byte != std::byte{kUntouched}; };
    const std::byte* end = block.at + block.size_bytes;
    if (std::none_of(block.at - kMargin, block.at, is_touched) && std::none_of(end, end + kMargin, is_touched)) return;
    std::fprintf(stderr, "emulated GPU: something has written beside a block of %zu bytes\n", block.size_bytes);
    std::abort();
  }

  void forget_oldest() {
    std::byte* at = retired_.front();
    retired_.pop_front();
    retired_bytes_ -= blocks_.at(at).size_bytes;
    blocks_.erase(at);
    std::free(at - kMargin);
  }

  std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;
  std::deque<std::byte*> retired_;
  std::size_t retired_bytes_ = 0;
  std::array<std::size_t, kMostGpus> in_use_{};
  std::array<std::array<bool, kMostGpus>, kMostGpus> has_let_in_{};
};

Memory& memory() {
  static Memory& memory = *new Memory;
  return memory;
}

}  // namespace

void* allocate(int gpu, std::size_t size_bytes) {
  return memory().allocate(gpu, size_bytes);
}

bool release(void* block) {
  return memory().release(static_cast<std::byte*>(block));
}

int place_of(const void* at) {
  const std::lock_guard lock(memory().mutex());
  const Block* block = memory().find(static_cast<const std::byte*>(at));
  return block == nullptr ? kNowhere : block->gpu;
}

cudaError_t check_access(const void* at, std::size_t size_bytes, int from_gpu) {
  if (size_bytes == 0) return cudaSuccess;
  const std::lock_guard lock(memory().mutex());
  const auto* begin = static_cast<const std::byte*>(at);
  const Block* block = memory().find(begin);
  const bool is_right = block != nullptr && block->is_live && memory().may_reach(*block, from_gpu) &&
                        begin + size_bytes <= block->at + block->size_bytes;
  return is_right ? cudaSuccess : cudaErrorIllegalAddress;
}

cudaError_t check_copy(const void* at, std::size_t size_bytes) {
  const int place = place_of(at);
  if (place == kNowhere) return cudaSuccess;
  return check_access(at, size_bytes, place == kHost ? 0 : place);
}

cudaError_t check_pointer(const void* at, int from_gpu) {
  return place_of(at) == kNowhere ? cudaSuccess : check_access(at, 1, from_gpu);
}

void let_in(int owner, int peer, bool may) {
  memory().let_in(owner, peer, may);
}

void count_memory_anew() {
  memory().count_anew();
}

std::size_t bytes_in_use(int gpu) {
  const std::lock_guard lock(memory().mutex());
  return memory().in_use(gpu);
}

}  // namespace tandem::emulation
