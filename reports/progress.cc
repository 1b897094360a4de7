#include "reports/progress.h"

#include <fmt/format.h>

#include <chrono>

namespace tandem {
namespace {

constexpr double kSilent_s = 2;
constexpr double kTerminalInterval_s = 0.1;
constexpr double kPlainInterval_s = 10;

double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.now_s) options_.now_s = steady_now_s;
  started_s_ = options_.now_s();
  last_s_ = options_.terminal ? started_s_ + kSilent_s - kTerminalInterval_s : started_s_;
}

Progress::~Progress() {
  finish();
}

void Progress::update(std::string_view what, int done, int total) {
  if (!options_.stream) return;
  const double now_s = options_.now_s();
  const double interval_s = options_.terminal ? kTerminalInterval_s : kPlainInterval_s;
  if (now_s - last_s_ < interval_s || now_s - started_s_ < kSilent_s) return;
  last_s_ = now_s;
  const std::string count = total > 0 ? fmt::format("{} of {}", done, total) : fmt::format("{}", done);
  const std::string line = fmt::format("{}: {}, {:.0f} s", what, count, now_s - started_s_);
  if (options_.terminal) {
    *options_.stream << "\r" << line << "\033[K" << std::flush;
    shown_ = true;
  } else {
    *options_.stream << line << std::endl;
  }
}

void Progress::finish() {
  if (!shown_) return;
  *options_.stream << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace tandem
