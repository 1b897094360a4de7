// Ends this process, and with it the job, if the ranks of a launch do not all join it: MPI begins when all have come,
// and would wait for one that stands still for ever.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/launched_job.h"

namespace tandem::mpi {

// Watches from its construction to its destruction. Ends the process with kRunFailed, and says why on stderr, after
// TANDEM_MPI_JOIN_S seconds, 120 if the environment does not set it. Throws Error where that is no number above 0.
class JoinWatch {
 public:
  explicit JoinWatch(Rank rank);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void watch(Rank rank, double limit_s);

  std::mutex mutex_;
  std::condition_variable joined_;
  bool has_joined_ = false;
  std::thread thread_;
};

}  // namespace tandem::mpi
