// A physical GPU, shared by the logical devices on it: its memory and its events.
//
// Threads: any.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/threads/block_pool.h"

namespace tandem::cuda {

// Makes a GPU the calling thread's current one, and restores the former one.
class UseGpu {
 public:
  explicit UseGpu(int gpu);
  ~UseGpu();
  UseGpu(const UseGpu&) = delete;
  UseGpu& operator=(const UseGpu&) = delete;

 private:
  int former_ = 0;
};

class EventPool;

// A point in a CUDA stream, with its time; given back to its pool for reuse.
class GpuEvent {
 public:
  GpuEvent(std::shared_ptr<EventPool> pool, cudaEvent_t handle) : pool_(std::move(pool)), handle_(handle) {}
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  cudaEvent_t handle() const { return handle_; }

 private:
  const std::shared_ptr<EventPool> pool_;
  const cudaEvent_t handle_;
};

class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  explicit EventPool(int gpu) : gpu_(gpu) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  std::shared_ptr<GpuEvent> record(cudaStream_t stream);

 private:
  friend class GpuEvent;
  cudaEvent_t take();

  const int gpu_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

class Gpu {
 public:
  // Throws RunError when the GPU cannot be used. `watchdog_s` bounds the time of an allocation.
  Gpu(int ordinal, double watchdog_s);

  int ordinal() const { return ordinal_; }
  const std::string& text() const { return text_; }  // "GPU 0"
  const std::shared_ptr<threads::BlockPool>& memory() const { return memory_; }
  EventPool& events() const { return *events_; }

 private:
  const int ordinal_;
  const std::string text_;
  const std::shared_ptr<threads::BlockPool> memory_;
  const std::shared_ptr<EventPool> events_;
};

// Makes a pool of host memory that GPUs copy from and to at full speed.
std::shared_ptr<threads::BlockPool> make_pinned_memory();

}  // namespace tandem::cuda
