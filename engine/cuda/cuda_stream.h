// A stream of the cuda engine: a thread that issues to a lane, a CUDA stream or the host.
//
// The thread keeps issuing off the tasks' path, and is where a stream waits for what no GPU knows of: other workers in
// a collective, an event not issued yet. Such waits show in a deadlock's message.
#pragma once

#include <memory>
#include <vector>

#include "engine/cuda/cuda_event.h"
#include "engine/cuda/gpu_watch.h"
#include "engine/cuda/op_batch.h"
#include "engine/threads/queued_stream.h"

namespace tandem::cuda {

class CudaStream final : public threads::QueuedStream<CudaStream, CudaEvent> {
 public:
  CudaStream(threads::RunContext& context, threads::WorkerState& worker, GpuWatch& watch, Device& device, int index,
             std::unique_ptr<Lane> lane);
  ~CudaStream() override { end_thread(); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void synchronize() override { record().synchronize(); }
  void finish(std::vector<Record>& records);

  // On a task: returns when the GPU has come by, throws when it has failed.
  void wait_for(const GpuEvent& point);
  cudaStream_t gpu_stream() const { return lane_->gpu_stream(); }

 private:
  void begin_thread() override;
  bool tidy() override;
  void flush() override;
  void perform(Op& op, int step) override;
  void perform(Copy& copy, int step) override;
  void perform(Mark& mark, int step) override;
  void perform(WaitFor& wait, int step) override;
  // One with a time limit waits for its stream first, and is waited for: the limit counts from when the GPU is ready
  // for it to when the GPU is done.
  void perform(Collective& collective, int step) override;
  void launch_now(Op& op, int step);
  void issue(const Collective& collective, int step);
  void wait_within(const Collective& collective, threads::Clock::time_point deadline);

  GpuWatch& watch_;
  const std::unique_ptr<Lane> lane_;
  OpBatch batch_;  // held back, where the lane has graphs
};

}  // namespace tandem::cuda
