// Refuses, with what it would need, a run that this machine has not the memory or the threads for.
//
// Threads: one at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scenarios/run_size.h"
#include "topologies/base/error.h"

namespace tandem {

// A run that this machine is too small for. Exit code 5.
class SizeError : public RunError {
  using RunError::RunError;
};

class SizeCheck {
 public:
  // Counts the records that a device leaves in a step; 0 where that is not worth the time. Called for large jobs only.
  using CountRecords = std::function<double()>;

  // `symmetry`: whether workers may represent others. The scenario must outlive this object.
  SizeCheck(const Scenario& scenario, bool symmetry, CountRecords count_records)
      : scenario_(scenario), symmetry_(symmetry), count_records_(std::move(count_records)) {}

  // All throw SizeError, with the place in the file.
  void before_run();
  // Workers turned out to differ, so that more of them will run than before_run() has counted: tells each of them, as
  // it begins, whether there is memory for it.
  void before_next_run();
  void begin_worker();

 private:
  RunSize size(bool symmetry);
  std::string problem_here() const;  // of an engine that is this machine

  const Scenario& scenario_;
  bool symmetry_;
  CountRecords count_records_;
  std::optional<double> records_{};  // of a device in a step, once they have been counted
  int begun_ = 0;
  int most_ = 0;           // workers that there is memory for; 0: for all of them
  std::string problem_{};  // of a run of more workers
};

}  // namespace tandem
