// Ends this process, and with it the job, if not all ranks of a launch join it, because MPI begins when all are there
// and would wait for one that hangs for ever; also if this process is sent a signal before.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/launched_job.h"

namespace tandem::mpi {

// How long a process waits for all others of its job to begin: TANDEM_MPI_JOIN_S seconds, 120 if the environment does
// not set it. Throws Error where that is no number above 0.
double join_timeout_s();

// Watches from construction to destruction. After join_timeout_s(), says why on stderr and exits with kRunFailed;
// after a signal (signal_to_job), with kInterrupted.
class JoinWatch {
 public:
  explicit JoinWatch(Rank rank);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void watch(Rank rank, double timeout_s);

  std::mutex mutex_;  // guards has_joined_
  std::condition_variable joined_;
  bool has_joined_ = false;
  std::thread thread_;
};

}  // namespace tandem::mpi
