// A point in a stream of the cpu engine, complete once the stream's thread has reached it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/threads/waiter.h"

namespace tandem::cpu {

class CpuStream;

class CpuEvent : public EventState {
 public:
  explicit CpuEvent(CpuStream& stream);

  bool is_complete() const override { return is_complete_.load(); }
  void synchronize() override;

  void complete();
  // The same for a point before which the stream could not copy from or to a process that was lost: synchronize()
  // throws the error, and so does that of the next event on a stream that waits for this one.
  void complete_with_loss(std::exception_ptr loss);
  // Once complete: that error, or null.
  virtual std::exception_ptr loss() const { return loss_; }
  // Calls `function`, which does not throw, once the event is complete: on the thread that completes it, or now.
  void when_complete(std::function<void()> function);
  // Waits on the thread of another stream. Returns false when the run was stopped first.
  bool wait_on_stream(threads::Waiter& waiter);

 protected:
  // Makes an event that somebody else completes: a point in a stream of another process.
  explicit CpuEvent(threads::RunControl& control) : control_(control) {}
  virtual std::string text() const;  // names what completes it
  virtual void throw_if_failed() const;

 private:
  class Reached;

  threads::RunControl& control_;
  CpuStream* const stream_ = nullptr;
  std::atomic<bool> is_complete_{false};
  threads::WaitList waiters_;
  std::mutex mutex_;  // guards functions_
  std::vector<std::function<void()>> functions_;
  std::exception_ptr loss_;  // written before it is complete
};

}  // namespace tandem::cpu
