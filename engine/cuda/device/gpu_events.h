// Points in CUDA streams, which are reused.
//
// Threads: any.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem::cuda {

// Return how far a stream or an event is, or how its GPU has failed. "Not ready" is no error here, but CUDA keeps it as
// the thread's last error, where it would be mistaken for that of a launch; so these clear it.
cudaError_t query(cudaStream_t stream);
cudaError_t query(cudaEvent_t event);

class EventPool;
// Whether a point has a time. Times cost the host and the GPU more.
enum class Timing : bool { none, measured };

// A point in a CUDA stream, which goes back to its pool for reuse.
class GpuEvent {
 public:
  GpuEvent(std::shared_ptr<EventPool> pool, cudaEvent_t handle, Timing timing)
      : pool_(std::move(pool)), handle_(handle), timing_(timing) {}
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  cudaEvent_t handle() const { return handle_; }

 private:
  const std::shared_ptr<EventPool> pool_;
  const cudaEvent_t handle_;
  const Timing timing_;
};

class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  explicit EventPool(int gpu) : gpu_(gpu) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  std::shared_ptr<GpuEvent> record(cudaStream_t stream, Timing timing);

 private:
  friend class GpuEvent;
  cudaEvent_t take(Timing timing);

  const int gpu_;
  std::mutex mutex_;                              // guards free_
  std::array<std::vector<cudaEvent_t>, 2> free_;  // by Timing
};

}  // namespace tandem::cuda
