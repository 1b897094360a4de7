#include <algorithm>
#include <optional>

#include "scenarios/faults/course_model.h"

namespace tandem {
namespace {

// What the scenario does not state of the recovery from the failures that the job met.
std::vector<std::string> unknown_of(const CourseJob& job, const FaultSettings& faults) {
  const RecoverySettings& recovery = faults.recovery;
  const CheckpointSettings& checkpoint = recovery.checkpoint;
  const bool saves = checkpoint.saves();
  const bool rolls_back = job.policy != RecoveryPolicy::continue_ && job.policy != RecoveryPolicy::wait;
  std::vector<std::string> unknown;
  const auto add = [&](bool is_unknown, const char* what) {
    if (is_unknown) unknown.emplace_back(what);
  };
  add(!recovery.detection_s, "detection");
  add(!recovery.restart_s && job.policy != RecoveryPolicy::wait, "restart");
  add(!checkpoint.load_s, "checkpoint.load");
  add(!saves && rolls_back, "checkpoint.every");
  add(saves && !checkpoint.time_s, "checkpoint.time");
  const bool needs_machine = job.policy != RecoveryPolicy::spare;
  add(needs_machine && std::ranges::any_of(faults.fail, [](const FailFault& one) { return !one.back_after_s; }),
      "back_after");
  return unknown;
}

double goodput_with(CourseJob job, const FaultSettings& faults, double extra_s) {
  job.extra_s = extra_s;
  return course_of(job, faults).goodput();
}

// Returns the most seconds for each restart with which so much of the time is useful; nothing where even 0 are too
// many.
std::optional<double> most_seconds(const CourseJob& job, const FaultSettings& faults, const JobCourse& course,
                                   double goodput) {
  constexpr int kHalvings = 24;
  if (course.goodput() < goodput) return std::nullopt;
  double least_s = 0, most_s = course.mttf_s;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle_s = (least_s + most_s) / 2;
    (goodput_with(job, faults, middle_s) >= goodput ? least_s : most_s) = middle_s;
  }
  return least_s;
}

constexpr int kRedraws = 20;

// The same faults with other draws; nothing where none is drawn.
std::optional<FaultSettings> drawn_again(const FaultSettings& faults, int times) {
  FaultSettings again = faults;
  bool draws = false;
  const auto redraw = [&](std::uint64_t& seed) {
    seed = seed * 1'000'003 + static_cast<std::uint64_t>(times);
    draws = true;
  };
  for (FailFault& fail : again.fail) {
    if (fail.mttf_s) redraw(fail.seed);
  }
  for (SlowFault& slow : again.slow) {
    if (slow.again) redraw(slow.again->seed);
  }
  return draws ? std::optional(std::move(again)) : std::nullopt;
}

// With many failures chance makes little difference, and their courses take long.
void add_redraws(const CourseJob& job, const FaultSettings& faults, JobCourse& course) {
  constexpr std::int64_t kManyFailures = 50'000;
  if (course.failures > kManyFailures) return;
  for (int times = 1; times <= kRedraws; ++times) {
    const auto again = drawn_again(faults, times);
    if (!again) return;
    const double goodput = course_of(job, *again).goodput();
    course.least_goodput = std::min(course.least_goodput.value_or(course.goodput()), goodput);
    course.greatest_goodput = std::max(course.greatest_goodput.value_or(course.goodput()), goodput);
    course.redraws = times;
  }
}

}  // namespace

JobCourse whole_course(const CourseJob& job, const FaultSettings& faults) {
  JobCourse course = course_of(job, faults);
  add_redraws(job, faults, course);
  if (course.failures == 0 || job.policy == RecoveryPolicy::end) return course;
  course.unknown = unknown_of(job, faults);
  const bool stops_all = job.policy != RecoveryPolicy::continue_;
  if (course.unknown.empty() || !stops_all || !course.ended.empty()) return course;
  for (const double goodput : {0.95, 0.9, 0.8}) {
    const auto seconds = most_seconds(job, faults, course, goodput);
    if (seconds) course.break_even.push_back({.goodput = goodput, .seconds = *seconds});
  }
  return course;
}

}  // namespace tandem
