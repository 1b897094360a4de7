// How threads wait for a GPU: by polling, so that a stopped run, a failed communicator and a hanging GPU end the wait.
// Polling takes processor time, which also tells the deadlock watch that the thread is not stuck.
//
// Threads: any.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/threads/run_control.h"

namespace tandem::cuda {

// Something that may fail on its own. check() throws RunError if it has failed; while another thread uses it, check()
// returns without looking. give_up() hands over its NCCL communicators, whose abort ends the work that it has on GPUs.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void check() = 0;
  virtual std::vector<ncclComm_t> give_up() = 0;
};

// Aborts communicators on a separate thread, because a GPU that hangs blocks whoever frees what it uses. Aborts them
// together, because the work of one ends only when that of the others does.
void abort_together(std::vector<ncclComm_t> communicators);

// A pause in a loop that polls. It takes no time at first, since most waits are for a GPU that is nearly done; later, a
// free core is worth more than a few microseconds.
class PollPause {
 public:
  void operator()() const;
  bool is_over(double timeout_s) const {
    return threads::Clock::now() - begin_ > std::chrono::duration<double>(timeout_s);
  }

 private:
  const threads::Clock::time_point begin_ = threads::Clock::now();
};

// Tells when a run has been stopped for so long, a second, that nobody waits for its GPUs any more.
class StopGrace {
 public:
  using IsStopped = std::function<bool()>;
  // `is_stopped` may be empty: then never. It outlives this.
  explicit StopGrace(const IsStopped& is_stopped) : is_stopped_(is_stopped) {}
  bool is_over();

 private:
  const IsStopped& is_stopped_;
  std::optional<PollPause> since_stopped_;
};

// Waits until all work of the stream is done or has failed. Returns false when that takes longer than `timeout_s`.
bool ends_within(cudaStream_t stream, double timeout_s);

class GpuWatch {
 public:
  // `timeout_s` is the watchdog's timeout: a point that a GPU does not reach in time ends the run.
  explicit GpuWatch(double timeout_s) : timeout_s_(timeout_s) {}

  void add(const std::weak_ptr<Watched>& watched);

  enum class Outcome : std::uint8_t { complete, stopped, late };
  // Returns when the GPU has reached the event, the run was stopped, or `deadline` is over. Throws RunError for an
  // error on the GPU, and when the watchdog's timeout expires; `who` is the stream it names.
  Outcome wait(cudaEvent_t event, const threads::RunControl& control, std::string_view who,
               threads::Clock::time_point deadline = threads::kNever);
  // Waits for the end of a stream's work, even in a stopped run. Returns false when the GPU hangs and may use the
  // stream's memory for ever. After a failure, collectives may wait for work that was never issued: they are aborted.
  bool outlasts(cudaStream_t stream, bool has_failed);

  double timeout_s() const { return timeout_s_; }
  // Throws the RunError of what has failed on its own. Does nothing while another thread checks.
  void check_watched();

 private:
  void abort_watched();

  const double timeout_s_;
  std::mutex mutex_;  // guards watched_
  std::vector<std::weak_ptr<Watched>> watched_;
};

}  // namespace tandem::cuda
