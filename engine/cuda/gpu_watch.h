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

#include "engine/cpu/waiter.h"

namespace tandem::cuda {

// What may have failed on its own: check() throws RunError then.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void check() = 0;
};

class GpuWatch {
 public:
  // The watchdog's limit: a point that a GPU does not reach in this time ends the run.
  static constexpr int kLimitS = 300;

  void add(const std::weak_ptr<Watched>& watched);

  enum class Outcome : std::uint8_t { complete, stopped, late };
  // Returns when the GPU has reached the event, the run was stopped, or `deadline` is over. Throws RunError for what
  // has gone wrong on the GPU, and beyond the limit; `who` is the stream it names.
  Outcome wait(cudaEvent_t event, const cpu::RunControl& control, std::string_view who,
               cpu::Clock::time_point deadline = cpu::kNever);

 private:
  void check_watched();

  std::mutex mutex_;
  std::vector<std::weak_ptr<Watched>> watched_;
};

}  // namespace tandem::cuda
