// A point in a stream: issued once the stream's thread has come by, complete once the GPU has.
#pragma once

#include <atomic>
#include <memory>

#include "engine/cuda/lane.h"
#include "engine/device.h"
#include "engine/threads/waiter.h"

namespace tandem::cuda {

class CudaStream;

class CudaEvent final : public EventState {
 public:
  explicit CudaEvent(CudaStream& stream) : stream_(stream) {}

  bool is_complete() const override;
  void synchronize() override;

  // `point`: null where the work before is done already.
  void issue(std::shared_ptr<GpuEvent> point);
  // For a stream that waits: returns when it is issued; false when the run was stopped first.
  bool wait_until_issued(threads::Waiter& waiter);
  const GpuEvent* point() const { return point_.get(); }  // once issued

 private:
  class Issued;

  CudaStream& stream_;
  std::shared_ptr<GpuEvent> point_;  // written before is_issued_
  std::atomic<bool> is_issued_{false};
  threads::WaitList waiters_;
};

}  // namespace tandem::cuda
