// A stream as a queue: its head executes, the rest waits. It needs no actor: whatever ends the head starts the next
// operation, in SimGrid's kernel.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/sim/cores.h"
#include "engine/sim/scheduler.h"
#include "engine/sim/sim_device.h"

namespace tandem::sim {

// One queued operation. Everything except the constructor is called in the kernel.
class StreamWork {
 public:
  virtual ~StreamWork() = default;
  // Starts the operation as the head of the stream. It calls stream.finish_head() at its end, maybe before this
  // returns.
  virtual void start(SimStream& stream) = 0;
  virtual std::string text() const = 0;  // "op 'gemm'", for the message of a deadlock
  // Whether start() itself waits for issued_s; otherwise it is not called before that date.
  virtual bool starts_before_issue() const { return false; }
  // Whether it is work for a core, before which the stream's thread lets others go first.
  virtual bool needs_core() const { return false; }
  // Whether it runs on the device's multiprocessors and so slows down the ops of other streams.
  virtual bool slows_ops() const { return false; }

  double issued_s = 0;   // the date at which the host has issued it
  bool is_item = false;  // of work that was issued as one, and not the end of it
};

class SimStream : public Stream {
 public:
  SimStream(SimDevice& device, int index);

  Device& device() const override { return device_; }
  int index() const override { return index_; }
  void launch(Op op) override;
  void copy(const Tensor& to, const Tensor& from, Category category) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void took_part_in_launch() override;

  SimDevice& sim_device() const { return device_; }
  // Makes a record of this stream in the step of the current task.
  Record make_record(RecordKind kind, Category category, Name name) const;
  // Each adds host time, that of one launch or `seconds`, to the debt of the current task, which issues `what`. Returns
  // the date at which the task will have issued the work.
  double charge_launch(Name what) { return charge_launch(what, device_.costs().launch_overhead_s()); }
  double charge_launch(Name what, double seconds);
  void issue(std::unique_ptr<StreamWork> work);
  // Called in the kernel. enqueue() starts the operation immediately if nothing is before it.
  void enqueue(std::unique_ptr<StreamWork> work);
  void finish_head();
  // Replaces a head that has started by others, of which only the last is no item.
  void replace_head(std::vector<std::unique_ptr<StreamWork>> works);
  // The stream's thread, where the device is one; null otherwise.
  Cores::Thread* thread() const { return thread_.get(); }
  // For a head that waits for something else than a core: it begins to wait; `then` is called once its thread, woken by
  // a stream of that node, runs again.
  void begin_wait();
  void go_on(const Cores::Node* woken_by, Cores::Then then);
  bool is_idle() const { return queue_.empty(); }
  std::string text() const;  // "stream 0 of /job:..., which is at op 'gemm'"

 private:
  void advance();
  void start_head();
  void start_issued_head();
  void start_head_on_thread();

  SimDevice& device_;
  int index_;
  std::deque<std::unique_ptr<StreamWork>> queue_;
  bool head_started_ = false;
  bool is_advancing_ = false;
  std::unique_ptr<Cores::Thread> thread_;
  std::uint64_t issued_ = 0;
  std::uint64_t finished_ = 0;
  std::map<std::uint64_t, WaitList> waiting_;  // by the number of finished operations they wait for
};

}  // namespace tandem::sim
