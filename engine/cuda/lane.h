// Where the work of a stream goes: to a CUDA stream, or to the host thread itself.
//
// Threads: the stream's own, except where it says any.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "engine/cuda/gpu.h"
#include "engine/cuda/launch_graphs.h"
#include "engine/op.h"
#include "engine/timeline.h"

namespace tandem::cuda {

// The beginning of a piece of work.
struct Beginning {
  Nanoseconds at_ns = 0;            // on the host's clock, when it was issued
  std::shared_ptr<GpuEvent> event;  // null on the host
};

// What must stay in memory until a piece of work is done.
struct Kept {
  Kernel kernel{};
  Tensor first{}, second{};
  std::vector<Op> ops{};
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual void use_on_this_thread() = 0;
  virtual Beginning begin() = 0;
  // Issues the work, or performs it. Throws RunError.
  virtual void execute(const Op& op) = 0;
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  // Of what began there; the record lacks its times only.
  virtual void end(const Beginning& beginning, Record record, Kept kept) = 0;
  // The point where all work so far is done; null: it is.
  virtual std::shared_ptr<GpuEvent> mark() = 0;
  virtual void wait(const GpuEvent& event) = 0;  // before any later work
  virtual void drain() = 0;                      // returns when all work so far is done, or the run was stopped
  // What is off the critical path, when there is nothing to issue: a little of it; true when more is left.
  virtual bool tidy() = 0;
  virtual void settle() = 0;                              // any thread: frees what finished work kept
  virtual void finish(std::vector<Record>& records) = 0;  // waits for all work, hands over the records. Any thread
  virtual LaunchGraphs* graphs() { return nullptr; }      // null: every op is launched by itself
  virtual cudaStream_t gpu_stream() const = 0;            // any thread; null on the host
};

}  // namespace tandem::cuda
