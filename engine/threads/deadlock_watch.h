// Looks a few times a second whether anybody in a run can still go on.
//
// A deadlock is proven, not guessed: it is declared when twice in a row every task and every stream waits for
// something that has not happened, and none has waited anew in between. Threads that run, starved or slow as they may
// be, never count as waiting; and nobody is stuck while a collective with a time limit is waited for, which ends by
// itself. What cannot be proven, a task that sleeps in a primitive of the operating system, ends the run when nothing
// at all has moved for `timeout_s` while others wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/threads/waiter.h"

namespace tandem::threads {

class DeadlockWatch {
 public:
  DeadlockWatch(RunControl& control, double timeout_s);
  ~DeadlockWatch();
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

 private:
  // One look at everybody. Equal signatures: nobody has moved in between.
  struct Look {
    std::vector<std::uint64_t> signature;
    bool is_anybody_blocked = false;
    bool is_anybody_running = false;
    bool is_stream_running = false;
    bool is_date_awaited = false;
    bool is_stuck() const { return is_anybody_blocked && !is_anybody_running && !is_date_awaited; }
  };
  void watch();
  Look look() const;
  std::string waits() const;

  RunControl& control_;
  const double timeout_s_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tandem::threads
