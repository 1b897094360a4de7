// Executes a recorded job again with other durations of its ops, and without the delays between them: an op starts as
// soon as those which it waits for have ended.
#pragma once

#include <vector>

#include "reports/blame/recorded_job.h"

namespace tandem {

// Threads: any, once it is made.
class Replay {
 public:
  // `job` must outlive this. Throws InputError where ops wait for each other in a circle.
  explicit Replay(const RecordedJob& job);

  // Takes the time of each op in each step (RecordedJob::at); of an op in a group, the time from the start of the last
  // op of its group. Returns when each op ends, in seconds since its step began.
  std::vector<double> ends(const std::vector<double>& durations_s) const;
  // Returns the time of each step, which ends with its last op.
  std::vector<double> step_times(const std::vector<double>& durations_s) const;

  // What decides when an op ends, going back from it: the member of its group that started last, itself where it has no
  // group; then the op for which that one waited longest. -1: it waited for none.
  struct Cause {
    int last_to_start = 0;
    int waited_for = -1;
  };
  Cause cause(int op, std::size_t step, const std::vector<double>& ends_s) const;

 private:
  void order_units();
  double start_of(int op, std::size_t step, const std::vector<double>& ends_s) const;

  const RecordedJob& job_;
  std::vector<std::vector<int>> units_;  // groups and single ops, in an order in which they can be executed
  std::vector<int> unit_of_;
};

}  // namespace tandem
