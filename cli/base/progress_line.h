// The progress of a run on stderr, which is also where Ctrl-C is noticed: the work stops at the next step that it
// tells.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/base/common_options.h"
#include "cli/base/interrupt.h"
#include "reports/base/progress.h"

namespace tandem {

class ProgressLine {
 public:
  explicit ProgressLine(const CommonOptions& options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows that work has begun that does not tell how far it is, and its phases (engine/base/run_phase.h), until one of
  // the functions below is called.
  void begin(const std::string& what);

  // For RunOptions::progress and CalibrateOptions::progress; this object must outlive them. Throws Interrupted.
  std::function<void(int step, int steps)> of_steps(const std::string& what);
  std::function<void(int run, int runs)> of_runs(const std::string& what);
  std::function<void(int done, int points, std::optional<double> left_s)> of_points(const std::string& what);
  // `sizes`: of the series of calls, equally many of each, one after the other.
  std::function<void(std::int64_t done, std::int64_t calls)> of_calls(const std::string& what,
                                                                      const std::vector<double>& sizes);
  // Stages may differ in length, or end before the last, so that no time left is shown.
  std::function<void(std::string_view stage, int done, int total)> of_stages(std::string what);
  void finish() { progress_.finish(); }

 private:
  std::function<void(std::int64_t, std::int64_t)> counted(std::string what);

  std::optional<OrderlyEnd> orderly_end_{};
  Progress progress_;
  const bool is_quiet_;
  // Ticks, because a single step may take long. Ends before progress_ does. Not for sweeps, which fork.
  std::mutex mutex_;  // guards nothing: end_ needs one to wait
  std::condition_variable_any end_;
  std::jthread ticker_;
};

}  // namespace tandem
