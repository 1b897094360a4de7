// How threads wait for a GPU: by looking, so that a stopped run, a failed communicator and a GPU that hangs end the
// wait. Looking costs processor time, which also tells the deadlock watch that the thread is not stuck.
//
// Threads: any.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/threads/waiter.h"

namespace tandem::cuda {

// What may have failed on its own: check() throws RunError then. abort() ends what it has under way on GPUs.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void check() = 0;
  virtual void abort() = 0;
};

// Returns when all work of the stream is done, or has failed; false when that takes longer.
bool ends_within(cudaStream_t stream, double limit_s);

class GpuWatch {
 public:
  // `limit_s`, the watchdog's: a point that a GPU does not reach in this time ends the run.
  explicit GpuWatch(double limit_s) : limit_s_(limit_s) {}

  void add(const std::weak_ptr<Watched>& watched);

  enum class Outcome : std::uint8_t { complete, stopped, late };
  // Returns when the GPU has reached the event, the run was stopped, or `deadline` is over. Throws RunError for what
  // has gone wrong on the GPU, and beyond the limit; `who` is the stream it names.
  Outcome wait(cudaEvent_t event, const threads::RunControl& control, std::string_view who,
               threads::Clock::time_point deadline = threads::kNever);
  // For the end of a stream, whether the run goes on or not: returns when its work is done; false when a GPU hangs,
  // which works on the stream's memory for ever. After a failure collectives may wait for work that was never issued:
  // they are aborted.
  bool outlasts(cudaStream_t stream, bool has_failed);

  double limit_s() const { return limit_s_; }

 private:
  void check_watched();
  void abort_watched();

  const double limit_s_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Watched>> watched_;
};

}  // namespace tandem::cuda
