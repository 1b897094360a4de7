// What a job did in some of its steps, as a graph of ops that every step executes, and the times at which each was
// recorded. Readers of timelines make it; replay.h and blame.h work on it.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace tandem {

// A process of the job, or a group of tensor-parallel ones of which one was recorded.
struct RecordedWorker {
  int replica = 0;  // its rank among those that do the same with other data
  int stage = 0;    // of a pipeline
  int rank = 0;     // in the job
};

// Ops that take equally long in a job without stragglers.
struct AlikeOps {
  std::string name{};
  // Which time all of them have then: the median for communication, whose times have a long tail of interference, and
  // the mean for everything else, because the job's work does not become less.
  bool by_median = false;
  bool is_send = false;  // may end before its peer has started, because data leave before they arrive
};

struct RecordedOp {
  int type = 0;    // to which slowdown is attributed: RecordedJob::types
  int alike = 0;   // RecordedJob::alikes
  int worker = 0;  // RecordedJob::workers
};

struct RecordedJob {
  std::string name{};                     // for people
  std::string file{};                     // the first of its files, for messages
  std::vector<RecordedWorker> workers{};  // in the order of replica, then stage
  std::vector<int> steps{};               // their numbers, ascending; there may be gaps
  std::vector<std::string> types{};
  std::vector<AlikeOps> alikes{};
  std::vector<RecordedOp> ops{};
  std::vector<std::vector<int>> after{};  // for each op, those which must have ended before it starts
  // Ops that exchange data with each other: each ends only after all have started. An op is in one group at most; one
  // alone in its group has no peer that was recorded.
  std::vector<std::vector<int>> groups{};
  // Times in seconds by op, then by step; the start counts from any time that all workers share in that step. NaN: the
  // op was not recorded in this step.
  std::vector<double> start_s{}, duration_s{};
  std::vector<std::string> notes{};  // what was left out or filled in

  std::size_t at(std::size_t op, std::size_t step) const { return op * steps.size() + step; }
  std::size_t replicas() const { return workers.empty() ? 0 : static_cast<std::size_t>(workers.back().replica) + 1; }
  std::size_t stages() const { return workers.empty() ? 0 : static_cast<std::size_t>(workers.back().stage) + 1; }
};

inline constexpr double kNotRecorded = std::numeric_limits<double>::quiet_NaN();

}  // namespace tandem
