#include "scenarios/faults/course_clock.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kMostSlices = 24;

std::size_t place_of(CourseState state) {
  return static_cast<std::size_t>(state);
}

}  // namespace

void CourseClock::pass(CourseState state, double end_s) {
  if (end_s <= now_s_) return;
  if (!parts_.empty() && parts_.back().state == state && state != CourseState::training) {
    parts_.back().to_s = end_s;
  } else {
    parts_.push_back({.state = state, .from_s = now_s_, .to_s = end_s});
  }
  now_s_ = end_s;
  commit_due();
}

void CourseClock::train(double end_s, double useful_s) {
  if (end_s <= now_s_) return;
  parts_.push_back({.state = CourseState::training, .from_s = now_s_, .to_s = end_s, .useful_s = useful_s});
  now_s_ = end_s;
  commit_due();
}

void CourseClock::commit() {
  kept_ = covered_ = parts_.size();
  commit_date_s_ = kNever;
}

void CourseClock::commit_at(double date_s, std::function<void()> kept) {
  covered_ = parts_.size();
  commit_date_s_ = date_s;
  on_kept_ = std::move(kept);
  commit_due();
}

void CourseClock::commit_due() {
  if (commit_date_s_ > now_s_) return;
  kept_ = covered_;
  commit_date_s_ = kNever;
  on_kept_();
}

void CourseClock::lose() {
  for (std::size_t i = kept_; i < parts_.size(); ++i) {
    if (parts_[i].state == CourseState::training) parts_[i].state = CourseState::lost;
  }
  commit();
}

void CourseClock::lose_last(double useful_s) {
  for (auto part = parts_.rbegin(); part != parts_.rend() && useful_s > 0; ++part) {
    if (part->state != CourseState::training || part->useful_s <= 0) continue;
    const double share = std::min(1.0, useful_s / part->useful_s);
    const double from_s = part->to_s - share * (part->to_s - part->from_s);
    useful_s -= share * part->useful_s;
    if (share == 1) {
      part->state = CourseState::lost;
      continue;
    }
    const Part lost{.state = CourseState::lost, .from_s = from_s, .to_s = part->to_s};
    part->to_s = from_s;
    part->useful_s *= 1 - share;
    parts_.insert(part.base(), lost);
    if (kept_ == parts_.size() - 1) kept_ = parts_.size();
    break;
  }
}

void CourseClock::report(JobCourse& course) const {
  course.seconds = now_s_;
  course.slices.assign(std::min(kMostSlices, parts_.size()), {});
  const double slice_s = now_s_ / static_cast<double>(std::max<std::size_t>(1, course.slices.size()));
  const auto add = [&](const Part& part, CourseState state, double share) {
    course.time_s[place_of(state)] += share * (part.to_s - part.from_s);
    auto slice = static_cast<std::size_t>(part.from_s / slice_s);
    for (double from_s = part.from_s; from_s < part.to_s && slice < course.slices.size(); ++slice) {
      const double to_s = std::min(part.to_s, static_cast<double>(slice + 1) * slice_s);
      course.slices[slice][place_of(state)] += share * (to_s - from_s) / slice_s;
      from_s = std::max(from_s, to_s);
    }
  };
  for (const Part& part : parts_) {
    if (part.state != CourseState::training) {
      add(part, part.state, 1);
      continue;
    }
    constexpr double kRounding = 1e-9;
    double useful = part.useful_s / (part.to_s - part.from_s);
    if (useful > 1 - kRounding) useful = 1;
    add(part, CourseState::training, useful);
    add(part, CourseState::slower, 1 - useful);
  }
}

}  // namespace tandem
