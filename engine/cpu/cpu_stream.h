// A stream of the cpu engine: one thread that works off a queue.
//
// Threads: issuing from any; the thread is started with the stream and ends with finish().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "engine/cpu/collective_call.h"
#include "engine/cpu/cpu_event.h"
#include "engine/cpu/local_device.h"
#include "engine/cpu/run_context.h"
#include "engine/cpu/work_queue.h"

namespace tandem::cpu {

// Records in the order of a stream's work. Chunks, so that growing never moves what is there in the middle of a run.
class RecordLog {
 public:
  void add(Record record);
  void move_to(std::vector<Record>& records);

 private:
  static constexpr std::size_t kChunkRecords = 1024;
  std::vector<std::vector<Record>> chunks_;
};

class CpuStream final : public LocalStream {
 public:
  CpuStream(RunContext& context, WorkerState& worker, Device& device, int index);
  ~CpuStream() override;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  Device& device() const override { return device_; }
  int index() const override { return index_; }
  void launch(Op op) override;
  void copy(const Tensor& to, const Tensor& from, Category category) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;

  void join(std::shared_ptr<CollectiveCall> call, int rank, std::optional<double> limit_s) override;

  // Works off what has been issued (or drops it, in a run that was stopped), then ends the thread.
  void finish();
  void take_records(std::vector<Record>& records) { log_.move_to(records); }  // after finish()

  RunControl& control() { return context_.control; }
  void throw_if_failed() const { worker_.throw_if_failed(); }
  std::string text() const;  // "stream 0 of /job:worker/replica:0/task:0/device:CPU:1"

 private:
  struct CopyItem {
    Tensor to, from;
    Category category;
  };
  struct RecordItem {
    std::shared_ptr<CpuEvent> event;
  };
  struct WaitItem {
    std::shared_ptr<CpuEvent> event;
  };
  struct CollectiveItem {
    std::shared_ptr<CollectiveCall> call;
    int rank;
    std::optional<double> limit_s;
  };
  struct Item {
    std::variant<Op, CopyItem, RecordItem, WaitItem, CollectiveItem> work;
    int step;
  };
  class Idle;

  template <typename Work>
  void push(Work&& work);
  void work_off();
  void perform(Op& op, int step);
  void perform(CopyItem& copy, int step);
  void perform(RecordItem& record, int step);
  void perform(WaitItem& wait, int step);
  void perform(CollectiveItem& collective, int step);
  bool take_part(const CollectiveItem& collective);  // true when it ended well
  // Runs `work` unless the run or the worker has failed; true when it ended well.
  template <typename Work>
  bool attempt(const std::string& name, Work&& work);
  void fail_op(const std::string& name, std::string_view what);

  RunContext& context_;
  WorkerState& worker_;
  Device& device_;
  const int index_;
  WorkQueue<Item> queue_;
  std::atomic<bool> is_finishing_{false};
  RecordLog log_;
  Waiter waiter_;
  std::thread thread_;  // last: uses everything above
};

}  // namespace tandem::cpu
