// Executes the ops and copies of a stream: on a GPU (GpuExecutor) or on the stream's own thread (HostExecutor).
//
// Threads: the stream's own, except where it says any; mark() also on a task's, while the stream's has nothing to do.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/cuda/device/gpu.h"
#include "engine/cuda/device/launch_graphs.h"
#include "engine/op.h"
#include "engine/timeline.h"

namespace tandem::cuda {

// The start of a piece of work.
struct WorkStart {
  Nanoseconds issued_ns = 0;        // on the host's clock
  std::shared_ptr<GpuEvent> event;  // null on the host, and for work without a record
  bool is_end_of_other = false;     // the event is the end of the previous work, maybe earlier than issued_ns
};

// What a piece of work uses, which must stay alive until it is done.
struct KeepAlive {
  Kernel kernel{};
  Tensor first{}, second{};
  std::vector<Op> ops{};
};

class OpExecutor {
 public:
  virtual ~OpExecutor() = default;
  virtual Gpu* gpu() = 0;  // the GPU it works on, null for the host; any thread
  // Gives back the memory of finished work, and returns how much work is left; any thread.
  virtual std::size_t settle() = 0;
  virtual void use_on_this_thread() = 0;
  // Marks the start of a piece of work, which leaves a record or not. One execute() or copy() follows, then end().
  virtual WorkStart begin(bool is_recorded) = 0;
  // Issues the work to the GPU, or executes it here. Throws RunError.
  virtual void execute(const Op& op) = 0;
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  // What is executed between these two takes `factor` times as long.
  virtual void note_time() = 0;
  virtual void hold_back(double factor) = 0;
  // Ends the work that begin() opened, and keeps its record, if it leaves one, with its start and end filled in.
  virtual void end(const WorkStart& start, std::optional<Record> record, KeepAlive keep_alive) = 0;
  // Returns the point where all work issued so far is done, or null when it is done already.
  virtual std::shared_ptr<GpuEvent> mark() = 0;
  virtual void wait(const GpuEvent& event) = 0;  // makes later work wait for the event
  virtual void drain() = 0;                      // returns when all work so far is done, or the run was stopped
  // Does some of the work that is off the critical path; called when there is nothing to issue. Returns whether more is
  // left.
  virtual bool tidy() = 0;
  virtual void finish(std::vector<Record>& records) = 0;  // waits for all work and appends its records; any thread
  virtual LaunchGraphs* graphs() { return nullptr; }      // null where every op is launched by itself
  virtual cudaStream_t gpu_stream() const = 0;            // any thread; null on the host
};

}  // namespace tandem::cuda
