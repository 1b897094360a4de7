// A point in a stream of the cpu engine, complete once the stream's thread has reached it.
#pragma once

#include <atomic>
#include <string>

#include "engine/device.h"
#include "engine/threads/waiter.h"

namespace tandem::cpu {

class CpuStream;

class CpuEvent final : public EventState {
 public:
  explicit CpuEvent(CpuStream& stream) : stream_(stream) {}

  bool is_complete() const override { return is_complete_.load(); }
  void synchronize() override;

  void complete();
  // Waits on the thread of another stream. Returns false when the run was stopped first.
  bool wait_on_stream(threads::Waiter& waiter);

 private:
  class Reached;

  CpuStream& stream_;
  std::atomic<bool> is_complete_{false};
  threads::WaitList waiters_;
};

}  // namespace tandem::cpu
