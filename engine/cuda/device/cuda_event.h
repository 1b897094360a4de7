// A point in a stream: issued once the host has reached it in the stream's order, complete once the GPU has.
#pragma once

#include <atomic>
#include <memory>

#include "engine/cuda/device/issue_order.h"
#include "engine/cuda/device/op_executor.h"
#include "engine/device.h"
#include "engine/threads/waiter.h"

namespace tandem::cuda {

class CudaStream;

class CudaEvent final : public EventState {
 public:
  explicit CudaEvent(CudaStream& stream) : stream_(stream) {}

  bool is_complete() const override;
  void synchronize() override;

  // Notes that the host has reached the event. `point` is null where the work before it is done already.
  void issue(std::shared_ptr<GpuEvent> point);
  // Waits on a stream's thread until the event is issued. Returns false when the run was stopped first.
  bool wait_until_issued(threads::Waiter& waiter);
  const GpuEvent* point() const { return point_.get(); }  // once issued
  // The work that is done when the event is complete, in the order of issue. Set once, before anybody waits.
  void set_clock(StreamClock clock) { clock_ = std::move(clock); }
  const StreamClock& clock() const { return clock_; }

 private:
  class Issued;

  CudaStream& stream_;
  StreamClock clock_;
  std::shared_ptr<GpuEvent> point_;  // written before is_issued_
  std::atomic<bool> is_issued_{false};
  threads::WaitList waiters_;
};

}  // namespace tandem::cuda
