#include "engine/cuda/device/gpu_events.h"

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/gpu.h"

namespace tandem::cuda {

cudaError_t query(cudaStream_t stream) {
  const cudaError_t state = cudaStreamQuery(stream);
  if (state == cudaErrorNotReady) cudaGetLastError();
  return state;
}

cudaError_t query(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) cudaGetLastError();
  return state;
}

GpuEvent::~GpuEvent() {
  const std::lock_guard lock(pool_->mutex_);
  pool_->free_[static_cast<std::size_t>(timing_)].push_back(handle_);
}

EventPool::~EventPool() {
  for (const auto& events : free_) {
    for (cudaEvent_t event : events) cudaEventDestroy(event);
  }
}

cudaEvent_t EventPool::take(Timing timing) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<cudaEvent_t>& free = free_[static_cast<std::size_t>(timing)];
    if (!free.empty()) {
      cudaEvent_t event = free.back();
      free.pop_back();
      return event;
    }
  }
  const UseGpu use(gpu_);
  cudaEvent_t event{};
  const unsigned flags = timing == Timing::measured ? cudaEventDefault : cudaEventDisableTiming;
  check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return event;
}

std::shared_ptr<GpuEvent> EventPool::record(cudaStream_t stream, Timing timing) {
  auto event = std::make_shared<GpuEvent>(shared_from_this(), take(timing), timing);
  check(cudaEventRecord(event->handle(), stream), "cudaEventRecord");
  return event;
}

}  // namespace tandem::cuda
