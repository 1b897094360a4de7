#include "engine/cuda/device/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/cuda_kernels.h"
#include "engine/cuda/device/gpu_watch.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kAlignmentBytes = 256;  // what cudaMalloc promises

// Returns whether there was room. Throws for any other error, which is one of the GPU and may be permanent.
bool has_room(cudaError_t error, std::string_view call, int gpu) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clear it: the caller reports that there is no room
    return false;
  }
  check(error, call, gpu == kHostPlace ? "the host" : fmt::format("GPU {}", gpu));
  return true;
}

// Allocates from the GPU's own pool, which returns memory to the system only when the pool is destroyed.
class GpuSource final : public threads::BlockSource {
 public:
  GpuSource(int gpu, double watchdog_s, std::shared_ptr<Hangs> hangs)
      : gpu_(gpu), watchdog_s_(watchdog_s), hangs_(std::move(hangs)) {
    const LaunchTurn turn;
    const UseGpu use(gpu);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaDeviceGetDefaultMemPool(&pool_, gpu), "cudaDeviceGetDefaultMemPool");
    std::uint64_t keep = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    let_peers_in();
  }
  ~GpuSource() override { cudaStreamDestroy(stream_); }
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;

  std::size_t alignment_bytes() const override { return kAlignmentBytes; }

  // Waits for the allocation, so that the block may be used on any stream.
  void* allocate(std::size_t size_bytes) override {
    const UseGpu use(gpu_);
    void* block = nullptr;
    {
      const LaunchTurn turn;  // the pool may have to grow
      if (!has_room(cudaMallocAsync(&block, size_bytes, stream_), "cudaMallocAsync", gpu_)) return nullptr;
    }
    if (!ends_within(stream_, watchdog_s_)) {
      hangs_->note(gpu_);
      throw RunError(fmt::format("GPU {} has not allocated memory in {} s, the watchdog's timeout", gpu_, watchdog_s_));
    }
    check(query(stream_), "cudaStreamQuery", "an allocation");
    return block;
  }
  void release(void* block, std::size_t /*size_bytes*/) noexcept override { cudaFreeAsync(block, stream_); }

 private:
  void let_peers_in() const {
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    for (int peer = 0; peer < gpus; ++peer) {
      int can = 0;
      if (peer == gpu_ || cudaDeviceCanAccessPeer(&can, peer, gpu_) != cudaSuccess || can == 0) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = peer;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check(cudaMemPoolSetAccess(pool_, &access, 1), "cudaMemPoolSetAccess");
    }
  }

  const int gpu_;
  const double watchdog_s_;
  const std::shared_ptr<Hangs> hangs_;
  cudaStream_t stream_{};
  cudaMemPool_t pool_{};
};

class PinnedSource final : public threads::BlockSource {
 public:
  explicit PinnedSource(std::shared_ptr<const Hangs> hangs) : hangs_(std::move(hangs)) {}
  std::size_t alignment_bytes() const override { return kAlignmentBytes; }
  void* allocate(std::size_t size_bytes) override {
    void* block = nullptr;
    const LaunchTurn turn;
    has_room(cudaHostAlloc(&block, size_bytes, cudaHostAllocPortable), "cudaHostAlloc", kHostPlace);
    return block;
  }
  // Keeps the block if a GPU hangs or the launch turn does not come, because freeing waits for every GPU.
  void release(void* block, std::size_t /*size_bytes*/) noexcept override {
    if (hangs_->any()) return;
    try {
      const LaunchTurn turn;
      cudaFreeHost(block);
    } catch (const RunError&) {
    }
  }

 private:
  const std::shared_ptr<const Hangs> hangs_;
};

bool reach_each_other(int gpu, int peer) {
  int there = 0, back = 0;
  return cudaDeviceCanAccessPeer(&there, gpu, peer) == cudaSuccess && there != 0 &&
         cudaDeviceCanAccessPeer(&back, peer, gpu) == cudaSuccess && back != 0;
}

}  // namespace

KeepGpu::KeepGpu() {
  check(cudaGetDevice(&former_), "cudaGetDevice");
}

KeepGpu::~KeepGpu() {
  cudaSetDevice(former_);
}

UseGpu::UseGpu(int gpu) {
  check(cudaSetDevice(gpu), "cudaSetDevice", fmt::format("GPU {}", gpu));
}

// GPUs that can reach each other have access to each other's pools, so CUDA knows how to copy. Between other GPUs it
// copies through the host.
void copy_memory(void* to, int to_gpu, const void* from, int from_gpu, std::size_t bytes, cudaStream_t stream,
                 std::string_view who) {
  if (to_gpu == kHostPlace || from_gpu == kHostPlace || to_gpu == from_gpu || reach_each_other(to_gpu, from_gpu)) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync", who);
  } else {
    check(cudaMemcpyPeerAsync(to, to_gpu, from, from_gpu, bytes, stream), "cudaMemcpyPeerAsync", who);
  }
}

void Gpu::add_user(GpuUser& user) {
  const std::lock_guard lock(users_mutex_);
  users_.push_back(&user);
}

void Gpu::remove_user(GpuUser& user) {
  const std::lock_guard lock(users_mutex_);
  std::erase(users_, &user);
}

std::size_t Gpu::settle_users() {
  const std::lock_guard lock(users_mutex_);
  std::size_t left = 0;
  for (GpuUser* user : users_) left += user->settle();
  return left;
}

// Unfinished work may hold memory until it is done and its user has noticed. It may also wait for the caller's own
// work, so this function gives up if no work has ended for a while.
void* Gpu::take_when_settled(std::size_t bytes) {
  constexpr double kLongestPauseS = 1;
  if (void* block = memory_->take(bytes); block != nullptr) return block;
  std::size_t least = settle_users();
  auto pause = std::make_optional<PollPause>();
  for (;;) {
    if (void* block = memory_->take(bytes); block != nullptr || pause->is_over(kLongestPauseS)) return block;
    (*pause)();
    const std::size_t left = settle_users();
    if (left < least) pause.emplace();
    least = std::min(least, left);
  }
}

Gpu::Gpu(int ordinal, double watchdog_s, std::shared_ptr<Hangs> hangs)
    : ordinal_(ordinal),
      text_(fmt::format("GPU {}", ordinal)),
      hangs_(std::move(hangs)),
      handles_(ordinal, hangs_),
      memory_(std::make_shared<threads::BlockPool>(std::make_unique<GpuSource>(ordinal, watchdog_s, hangs_))),
      events_(std::make_shared<EventPool>(ordinal)),
      clock_stream_(handles_.take_stream(StreamUse::computation)),
      clock_(*events_, clock_stream_) {
  if (clock_.start(watchdog_s)) return;
  note_hang();
  throw RunError(fmt::format("{} has not reached a point in {} s, the watchdog's timeout", text_, watchdog_s));
}

std::shared_ptr<threads::BlockPool> make_pinned_memory(std::shared_ptr<const Hangs> hangs) {
  return std::make_shared<threads::BlockPool>(std::make_unique<PinnedSource>(std::move(hangs)));
}

}  // namespace tandem::cuda
