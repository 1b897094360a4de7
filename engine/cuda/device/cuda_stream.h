// A stream of the cuda engine: a thread that issues work to an OpExecutor.
//
// The thread takes the cost of issuing off the tasks; only where it has nothing to do, a task marks a point of the
// stream itself. It also waits for what no GPU knows about: other workers in a collective, an event that is not issued
// yet. Such waits appear in the message of a deadlock.
#pragma once

#include <memory>
#include <vector>

#include "engine/cuda/device/cuda_event.h"
#include "engine/cuda/device/gpu_watch.h"
#include "engine/cuda/device/op_batch.h"
#include "engine/threads/queued_stream.h"

namespace tandem::cuda {

class CudaStream final : public threads::QueuedStream<CudaStream, CudaEvent>, public GpuUser {
 public:
  CudaStream(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Device& device, int index,
             std::unique_ptr<OpExecutor> executor, std::shared_ptr<IssueOrder> order, int number);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void synchronize() override { record().synchronize(); }
  void finish(std::vector<Record>& records);
  std::size_t settle() override { return executor_->settle() + left(); }

  void note_done(const StreamClock& clock) { order_->note_done(clock); }
  // Called on a task: returns when the GPU has reached the point, throws when it has failed.
  void wait_for(const GpuEvent& point);
  cudaStream_t gpu_stream() const { return executor_->gpu_stream(); }

 private:
  std::unique_lock<std::mutex> begin_issue() override;
  void lend(Tensor& operand) override;
  void issue_behind(StreamPoint point);
  void note_mark(CudaEvent& event) override { event.set_clock(order_->at({number_, issued_})); }
  void note_wait(const CudaEvent& event) override { order_->wait(number_, event.clock()); }
  bool marks_here(Mark& mark) override;
  void begin_thread() override;
  bool tidy() override;
  void flush() override;
  void execute(Op& op, int step) override;
  void execute(Copy& copy, int step) override;
  void execute(Mark& mark, int step) override;
  void execute(WaitFor& wait, int step) override;
  // With a timeout the thread waits for the GPU before and after the collective: the time counts from when the GPU is
  // ready for it to when the GPU is done.
  void execute(Collective& collective, int step) override;
  void mark(Mark& mark);
  void issue_held_back();
  void launch_now(Op& op, int step, double slowdown = 1);
  void launch_batch();
  void issue(const Collective& collective, int step);
  void wait_within(const Collective& collective, threads::Clock::time_point deadline);

  GpuWatch& watch_;
  const std::unique_ptr<OpExecutor> executor_;
  std::mutex executor_mutex_;  // held while work is issued to the executor, by this stream's thread or a marking one
  static constexpr std::size_t kFirstBatch = 32, kMostOfBatch = 4096;
  OpBatch batch_;  // ops held back, where the executor has graphs
  std::size_t batch_limit_ = kFirstBatch;
  const std::shared_ptr<IssueOrder> order_;
  const int number_;        // in that order
  std::mutex issue_mutex_;  // guards issued_, and the order of what is issued
  std::uint64_t issued_ = 0;
};

}  // namespace tandem::cuda
