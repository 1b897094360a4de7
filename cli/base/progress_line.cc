#include "cli/base/progress_line.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "engine/base/run_phase.h"
#include "engine/launched_job.h"
#include "reports/base/work_estimate.h"

namespace tandem {

ProgressLine::ProgressLine(const CommonOptions& options)
    : progress_({.stream = options.quiet || !reports_for_job() ? nullptr : &std::cerr,
                 .terminal = isatty(STDERR_FILENO) == 1,
                 .now_s = {}}),
      is_quiet_(options.quiet || !reports_for_job()) {}

ProgressLine::~ProgressLine() {
  set_phase_listener({});
}

void ProgressLine::begin(const std::string& what) {
  progress_.begin(what);
  set_phase_listener([this](const RunPhase& phase) { progress_.phase(phase.text, phase.starts_again); });
  if (is_quiet_ || ticker_.joinable()) return;
  ticker_ = std::jthread([this](const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kInterval{250};
    std::unique_lock lock(mutex_);
    while (!end_.wait_for(lock, stop, kInterval, [&stop] { return stop.stop_requested(); })) progress_.tick();
  });
}

std::function<void(int, int)> ProgressLine::of_steps(const std::string& what) {
  begin(what);
  return counted(what + ": step");
}

std::function<void(int, int)> ProgressLine::of_runs(const std::string& what) {
  begin(what);
  return counted(what + ": schedule");
}

std::function<void(int, int, std::optional<double>)> ProgressLine::of_points(const std::string& what) {
  if (!orderly_end_) orderly_end_.emplace();
  return [this, what = what + ": point"](int done, int points, std::optional<double> left_s) {
    check_for_interrupt();
    progress_.update(what, done, points, left_s.value_or(Progress::kUnknown));
  };
}

std::function<void(std::int64_t, std::int64_t)> ProgressLine::of_calls(const std::string& what,
                                                                       const std::vector<double>& sizes) {
  begin(what);
  if (!orderly_end_) orderly_end_.emplace();
  struct Reported {
    SeriesEstimate work;
    std::int64_t done = 0;
  };
  const auto last = std::make_shared<Reported>(Reported{SeriesEstimate(sizes, progress_.now_s())});
  return [this, what = what + ": call", sizes, last](std::int64_t done, std::int64_t calls) {
    check_for_interrupt();
    if (done < last->done) last->work = SeriesEstimate(sizes, progress_.now_s());  // the run begins again
    last->done = done;
    progress_.update(what, done, calls, last->work.left_s(done, calls, progress_.now_s()).value_or(Progress::kUnknown));
  };
}

std::function<void(std::int64_t, std::int64_t)> ProgressLine::counted(std::string what) {
  if (!orderly_end_) orderly_end_.emplace();
  return [this, what = std::move(what)](std::int64_t done, std::int64_t total) {
    check_for_interrupt();
    progress_.update(what, done, total);
  };
}

std::function<void(std::string_view, int, int)> ProgressLine::of_stages(std::string what) {
  if (!orderly_end_) orderly_end_.emplace();
  return [this, what = std::move(what)](std::string_view stage, int done, int total) {
    check_for_interrupt();
    progress_.update(what + ", " + std::string(stage), done, total, Progress::kUnknown);
  };
}

}  // namespace tandem
