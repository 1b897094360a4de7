#include "engine/cuda/gpu.h"

#include <fmt/format.h>

#include <cstdint>

#include "engine/cuda/cuda_error.h"
#include "engine/cuda/gpu_watch.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kAlignmentBytes = 256;  // what cudaMalloc promises

// Allocates from the GPU's own pool, which returns memory to the system only when the pool is destroyed.
class GpuSource final : public threads::BlockSource {
 public:
  GpuSource(int gpu, double watchdog_s) : gpu_(gpu), watchdog_s_(watchdog_s) {
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
    if (cudaMallocAsync(&block, size_bytes, stream_) != cudaSuccess) {
      cudaGetLastError();  // forget it: that there is no room is the caller's to report
      return nullptr;
    }
    if (!ends_within(stream_, watchdog_s_)) {
      throw RunError(fmt::format("GPU {} has not allocated memory in {} s, the watchdog's timeout", gpu_, watchdog_s_));
    }
    check(cudaStreamQuery(stream_), "cudaStreamQuery", "an allocation");
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
  cudaStream_t stream_{};
  cudaMemPool_t pool_{};
};

class PinnedSource final : public threads::BlockSource {
 public:
  std::size_t alignment_bytes() const override { return kAlignmentBytes; }
  void* allocate(std::size_t size_bytes) override {
    void* block = nullptr;
    if (cudaHostAlloc(&block, size_bytes, cudaHostAllocPortable) == cudaSuccess) return block;
    cudaGetLastError();
    return nullptr;
  }
  void release(void* block, std::size_t /*size_bytes*/) noexcept override { cudaFreeHost(block); }
};

}  // namespace

UseGpu::UseGpu(int gpu) {
  check(cudaGetDevice(&former_), "cudaGetDevice");
  check(cudaSetDevice(gpu), "cudaSetDevice", fmt::format("GPU {}", gpu));
}

UseGpu::~UseGpu() {
  cudaSetDevice(former_);
}

GpuEvent::~GpuEvent() {
  const std::lock_guard lock(pool_->mutex_);
  pool_->free_.push_back(handle_);
}

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  const UseGpu use(gpu_);
  cudaEvent_t event{};
  check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

std::shared_ptr<GpuEvent> EventPool::record(cudaStream_t stream) {
  auto event = std::make_shared<GpuEvent>(shared_from_this(), take());
  check(cudaEventRecord(event->handle(), stream), "cudaEventRecord");
  return event;
}

Gpu::Gpu(int ordinal, double watchdog_s)
    : ordinal_(ordinal),
      text_(fmt::format("GPU {}", ordinal)),
      memory_(std::make_shared<threads::BlockPool>(std::make_unique<GpuSource>(ordinal, watchdog_s))),
      events_(std::make_shared<EventPool>(ordinal)) {}

std::shared_ptr<threads::BlockPool> make_pinned_memory() {
  return std::make_shared<threads::BlockPool>(std::make_unique<PinnedSource>());
}

}  // namespace tandem::cuda
