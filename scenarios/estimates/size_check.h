// Refuses a run for which this machine lacks the memory or the threads, and says what it would need.
//
// Threads: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scenarios/estimates/run_size.h"
#include "topologies/base/machine_memory.h"

namespace tandem {

class SizeCheck {
 public:
  // Returns how many records a device leaves in a step, or 0 where counting them is not worth the time. Called for
  // large jobs only.
  using CountRecords = std::function<double()>;

  // `memory_share` is the part of this machine's memory that the run may take. The job must outlive this object.
  SizeCheck(const Job& job, Representatives representatives, CountRecords count_records, double memory_share = 1)
      : job_(job),
        representatives_(representatives),
        memory_share_(memory_share),
        count_records_(std::move(count_records)) {}

  // All throw SizeError, with the place in the file.
  void before_run();
  // Called before the run is repeated because workers turned out to differ, so that more of them run than before_run()
  // counted. begin_worker() then refuses the first worker for which there is no memory.
  void before_next_run();
  void begin_worker();

 private:
  RunSize size(Representatives representatives);
  std::optional<double> memory_bytes() const;  // that the run may take
  std::string simulation_problem(const RunSize& size) const;
  double fitting_share(const RunSize& size) const;
  std::string problem_here() const;  // for an engine that runs on this machine

  const Job& job_;
  Representatives representatives_;
  double memory_share_;
  CountRecords count_records_;
  std::optional<double> records_{};  // of a device in a step, once they have been counted
  int begun_ = 0;
  int most_ = 0;           // workers that there is memory for; 0: for all of them
  std::string problem_{};  // of a run of more workers
};

}  // namespace tandem
