#include "reports/base/progress.h"

#include "topologies/base/shown.h"

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
  started_s_ = began_s_ = options_.now_s();
  last_s_ = options_.terminal ? started_s_ + kSilent_s - kTerminalInterval_s : started_s_;
}

Progress::~Progress() {
  finish();
}

void Progress::update(std::string_view what, std::int64_t done, std::int64_t total, double left_s) {
  if (!options_.stream) return;
  const std::lock_guard lock(mutex_);
  const double now = options_.now_s();
  const bool is_other = has_begun_ && (done < done_ || total != total_);  // or the same work again
  if (is_other) began_s_ = updated_s_;
  if (!has_begun_ || is_other) {
    first_done_ = done;
    first_s_ = now;
  }
  if (!has_begun_ || is_other || done > done_) updated_s_ = now;
  what_ = what;
  done_ = done;
  total_ = total;
  told_left_s_ = left_s;
  has_begun_ = true;
  show(now);
}

void Progress::begin(std::string_view what) {
  const std::lock_guard lock(mutex_);
  title_ = what_ = what;
  phase_ = "begins";
  has_begun_ = false;
  began_s_ = options_.now_s();
}

void Progress::phase(std::string_view phase, bool starts_again) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  if (!starts_again) return;
  what_ = title_;
  has_begun_ = false;
  began_s_ = options_.now_s();
}

void Progress::tick() {
  const std::lock_guard lock(mutex_);
  if (options_.stream && !what_.empty()) show(options_.now_s());
}

void Progress::show(double now_s) {
  const double interval_s = options_.terminal ? kTerminalInterval_s : kPlainInterval_s;
  const double passed_s = now_s - started_s_;
  if (now_s - last_s_ < interval_s || passed_s < kSilent_s) return;
  last_s_ = now_s;
  std::string line = shown(what_) + ": ";
  if (!has_begun_) {
    line += phase_;
  } else {
    line += total_ > 0 ? fmt::format("{} of {}", done_, total_) : fmt::format("{}", done_);
  }
  line += fmt::format(", {:.0f} s", passed_s);
  if (const double left = left_s(now_s); left >= 0) line += fmt::format(", about {:.0f} s left", left);
  if (options_.terminal) {
    *options_.stream << "\r" << line << "\033[K" << std::flush;
    shown_ = true;
  } else {
    *options_.stream << line << std::endl;
  }
}

// The first part often takes longer than the others, so that it counts only as long as it is the only one.
double Progress::left_s(double now_s) const {
  if (!has_begun_ || total_ <= done_) return kUnknown;
  if (told_left_s_ != kEqualParts) return told_left_s_;
  if (done_ <= 0) return kUnknown;
  const auto parts_left = static_cast<double>(total_ - done_);
  if (done_ == first_done_) return (now_s - began_s_) / static_cast<double>(done_) * parts_left;
  const double usual_s = (updated_s_ - first_s_) / static_cast<double>(done_ - first_done_);
  const double since_s = now_s - updated_s_;  // of the part under way
  return since_s < usual_s ? usual_s * parts_left - since_s : usual_s * (parts_left - 1) + (since_s - usual_s) / 2;
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  what_.clear();
  if (!shown_) return;
  *options_.stream << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace tandem
