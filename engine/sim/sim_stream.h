// A stream as a queue: the head is under way, the rest waits. No actor belongs to it; whatever ends the head
// starts the next, in SimGrid's kernel.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "engine/device.h"
#include "engine/sim/scheduler.h"
#include "engine/sim/sim_device.h"

namespace tandem::sim {

// One queued operation. Everything but the constructor runs in the kernel.
class StreamWork {
 public:
  virtual ~StreamWork() = default;
  // Called once, when it is the head; calls stream.finish_head() at once or later.
  virtual void start(SimStream& stream) = 0;
  virtual std::string describe() const = 0;  // "op 'gemm'": what a stuck stream is at
  // Whether start() itself observes the time of issue.
  virtual bool starts_before_issue() const { return false; }

  double issued_s = 0;  // the host is done issuing it at this date
};

class SimStream : public Stream {
 public:
  SimStream(SimDevice& device, int index) : device_(device), index_(index) {}

  Device& device() const override { return device_; }
  int index() const override { return index_; }
  void launch(Op op) override;
  void copy(const Tensor& to, const Tensor& from, Category category) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;

  SimDevice& sim_device() const { return device_; }
  // A record of this stream in the step of the current task.
  Record make_record(RecordKind kind, Category category, std::string name) const;
  // The date at which the current task is done issuing one more operation, whose host time it now owes.
  double charge_launch();
  // In the kernel: appends and, if it can, starts.
  void enqueue(std::unique_ptr<StreamWork> work);
  void finish_head();
  bool is_idle() const { return queue_.empty(); }
  std::string describe() const;  // what its head waits for

 private:
  void issue(std::unique_ptr<StreamWork> work);
  void advance();
  void start_head();

  SimDevice& device_;
  int index_;
  std::deque<std::unique_ptr<StreamWork>> queue_;
  bool head_started_ = false;
  bool is_advancing_ = false;
  std::uint64_t issued_ = 0;
  std::uint64_t finished_ = 0;
  std::map<std::uint64_t, WaitList> waiting_;  // by the count of finished operations they need
};

}  // namespace tandem::sim
