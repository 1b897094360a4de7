// Checks several times a second whether any thread of a run can still make progress.
//
// A deadlock is proven, not guessed: it is declared when two successive looks find every task and every stream waiting
// for something that has not happened, and no thread has begun a new wait in between. A thread that runs, however slow
// or starved, never counts as waiting; and nothing is a deadlock while a thread waits for a collective with a timeout,
// which ends by itself. A task that sleeps in a primitive of the operating system escapes the proof: the run ends when
// nothing has moved for `timeout_s` while others wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/threads/neighbours.h"

namespace tandem::threads {

class DeadlockWatch {
 public:
  // Watches the run of `control`, and ends it in a deadlock. In a run over several processes it reports to `neighbours`
  // instead, and they decide; null: there are no others.
  DeadlockWatch(RunControl& control, double timeout_s, Neighbours* neighbours);
  ~DeadlockWatch();
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

 private:
  // One look at all threads. Between two looks with equal signatures no thread has moved.
  struct Look {
    std::vector<std::uint64_t> signature;
    bool is_anybody_blocked = false;
    bool is_anybody_running = false;
    bool is_stream_running = false;
    bool is_deadline_awaited = false;
    bool is_still() const { return !is_anybody_running && !is_deadline_awaited; }
    bool is_stuck() const { return is_anybody_blocked && is_still(); }
  };
  void watch();
  void declare(std::string message);
  Look look() const;
  std::string waits() const;

  RunControl& control_;
  const double timeout_s_;
  Neighbours* const neighbours_;
  std::mutex mutex_;  // guards is_ending_
  std::condition_variable ends_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tandem::threads
