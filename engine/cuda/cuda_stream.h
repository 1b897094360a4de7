// A stream of the cuda engine: a thread that works off a queue into a lane, a CUDA stream or the host.
//
// The thread keeps issuing off the tasks' path, and is where a stream waits for what no GPU knows of: other workers in
// a collective, an event not issued yet. Such waits show in a deadlock's message.
//
// Threads: issuing from any; the thread is started with the stream and ends with finish().
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "engine/cpu/local_device.h"
#include "engine/cpu/work_queue.h"
#include "engine/cuda/cuda_event.h"
#include "engine/cuda/gpu_watch.h"

namespace tandem::cuda {

class CudaStream final : public cpu::LocalStream {
 public:
  CudaStream(cpu::RunContext& context, cpu::WorkerState& worker, GpuWatch& watch, Device& device, int index,
             std::unique_ptr<Lane> lane);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device& device() const override { return device_; }
  int index() const override { return index_; }
  void launch(Op op) override;
  void copy(const Tensor& to, const Tensor& from, Category category) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  // A collective with a time limit waits for its stream first, and is waited for: the limit counts from when the GPU
  // is ready for it to when the GPU is done.
  void join(std::shared_ptr<cpu::CollectiveCall> call, int rank, std::optional<double> limit_s) override;

  void finish(std::vector<Record>& records);

  cpu::RunControl& control() { return context_.control; }
  void throw_if_failed() const { worker_.throw_if_failed(); }
  // On a task: returns when the GPU has come by, throws when it has failed.
  void wait_for(const GpuEvent& point);
  cudaStream_t gpu_stream() const { return lane_->gpu_stream(); }
  std::string text() const;

 private:
  struct CopyItem {
    Tensor to, from;
    Category category;
  };
  struct RecordItem {
    std::shared_ptr<CudaEvent> event;
  };
  struct WaitItem {
    std::shared_ptr<CudaEvent> event;
  };
  struct CollectiveItem {
    std::shared_ptr<cpu::CollectiveCall> call;
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
  void end_thread();
  bool tidy();  // true when there is more to do
  Record blank_record(RecordKind kind, Category category, std::string name, int step) const;
  void perform(Op& op, int step);
  void perform(CopyItem& copy, int step);
  void perform(RecordItem& record, int step);
  void perform(WaitItem& wait, int step);
  void perform(CollectiveItem& collective, int step);
  void take_part(const CollectiveItem& collective, int step);
  void wait_within(const CollectiveItem& collective, cpu::Clock::time_point deadline);
  // Runs `work` and notes its failure under that name; `always`: even when the worker has failed.
  template <typename Work>
  void attempt(const std::string& name, bool always, Work&& work);

  cpu::RunContext& context_;
  cpu::WorkerState& worker_;
  GpuWatch& watch_;
  Device& device_;
  const int index_;
  const std::unique_ptr<Lane> lane_;
  cpu::WorkQueue<Item> queue_;
  std::atomic<bool> is_finishing_{false};
  cpu::Waiter waiter_;
  std::thread thread_;  // last: uses everything above
};

}  // namespace tandem::cuda
