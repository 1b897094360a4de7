#include "reports/course/course_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "reports/base/text_table.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

std::string label_of(CourseState state) {
  switch (state) {
    case CourseState::training:
      return "training";
    case CourseState::slower:
      return "slower than undisturbed";
    case CourseState::lost:
      return "steps that are done again";
    case CourseState::checkpointing:
      return "writing checkpoints";
    case CourseState::detecting:
      return "until failures are known";
    case CourseState::waiting:
      return "waiting for machines";
    case CourseState::restarting:
      return "restarting";
    case CourseState::loading:
      return "loading checkpoints";
  }
  return "";
}

std::string failures_text(const JobCourse& course) {
  if (course.failures == 0) return "no failures\n";
  std::string text = fmt::format("{} failure{}", course.failures, course.failures == 1 ? "" : "s");
  if (course.mttf_s > 0) {
    text += fmt::format(", one every {} {}", duration_text(course.mttf_s),
                        course.is_mttf_given ? "in the mean" : "as it came");
  }
  if (course.checkpoints > 0) text += fmt::format("; {} checkpoints", course.checkpoints);
  if (course.steps_lost > 0)
    text += fmt::format("; {} steps are done again", count_text(std::round(course.steps_lost * 10) / 10));
  if (course.updates_twice > 0) text += fmt::format("; up to {} updates are applied twice", course.updates_twice);
  return text + "\n";
}

std::string unknown_text(const JobCourse& course) {
  if (course.unknown.empty()) return "";
  std::string text = fmt::format("unknown, and counted as 0: {}", fmt::join(course.unknown, ", "));
  std::vector<std::string> even;
  for (const BreakEven& one : course.break_even) {
    even.push_back(fmt::format("{} for a goodput of {}", duration_text(one.seconds), percent_text(one.goodput)));
  }
  if (!even.empty()) text += fmt::format("; in all they may take, for each failure, {}", fmt::join(even, ", "));
  return wrapped_list("", words_of(text), "");
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 2 * kMinute) return format_quantity(seconds, Dimension::seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.1f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{:.1f} d", seconds / kDay);
}

std::string course_text(const JobCourse& course) {
  std::string text = fmt::format("the job     {} of {} steps in {}; goodput {} (policy {})\n",
                                 count_text(course.steps_done), count_text(course.steps), duration_text(course.seconds),
                                 percent_text(course.goodput()), shown(course.policy));
  if (!course.ended.empty()) text += wrapped_list("it ended    ", words_of(shown(course.ended)), "");
  text += "            " + failures_text(course);
  TextTable table;
  table.add({"where the job's time goes", "time", "of the job"});
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    const double seconds = course.time_s[i];
    if (seconds <= 0) continue;
    table.add(
        {"  " + label_of(static_cast<CourseState>(i)), duration_text(seconds), percent_text(seconds / course.seconds)});
  }
  text += table.text() + unknown_text(course);
  if (course.best_interval_s) {
    text += wrapped_list(
        "",
        words_of(fmt::format(
            "checkpoints lose least with {} ({:.0f} steps) between them, sqrt(2 x mean time to failure x time of one): "
            "this leaves {} of the time, before detecting, restarting and loading",
            duration_text(*course.best_interval_s), *course.best_interval_s / course.undisturbed_step_s,
            percent_text(*course.best_availability))),
        "");
  }
  return text;
}

}  // namespace tandem
