#include "cli/progress_line.h"

#include <unistd.h>

#include <iostream>

#include "cli/interrupt.h"

namespace tandem {

ProgressLine::ProgressLine(const CommonOptions& options)
    : progress_({.stream = options.quiet ? nullptr : &std::cerr, .terminal = isatty(STDERR_FILENO) == 1, .now_s = {}}) {
}

std::function<void(int, int)> ProgressLine::of_steps(const std::string& what) {
  return counted(what + ": step");
}

std::function<void(int, int)> ProgressLine::of_runs(const std::string& what) {
  return counted(what + ": schedule");
}

std::function<void(int, int)> ProgressLine::of_points(const std::string& what) {
  return counted(what + ": point");
}

std::function<void(int, int)> ProgressLine::counted(std::string what) {
  return [this, what = std::move(what)](int done, int total) {
    check_for_interrupt();
    progress_.update(what, done, total);
  };
}

std::function<void(std::string_view, int, int)> ProgressLine::of_stages(std::string what) {
  return [this, what = std::move(what)](std::string_view stage, int done, int total) {
    check_for_interrupt();
    progress_.update(what + ", " + std::string(stage), done, total);
  };
}

}  // namespace tandem
