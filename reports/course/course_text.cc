#include "reports/course/course_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "reports/base/text_table.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

std::string steps_text(double steps) {
  const double rounded = std::round(steps * 10) / 10;
  return fmt::format("{:.{}f}", rounded, rounded == std::round(rounded) ? 0 : 1);
}

std::string failures_text(const JobCourse& course) {
  if (course.failures == 0) return "No failures.";
  std::string text = fmt::format("{} failure{}", course.failures, course.failures == 1 ? "" : "s");
  if (course.is_mttf_given || course.failures > 1) {
    text += fmt::format(", one every {}{}", duration_text(course.mttf_s), course.is_mttf_given ? " in the mean" : "");
  }
  if (course.steps_lost > 0) text += fmt::format("; {} steps are done again", steps_text(course.steps_lost));
  if (course.updates_twice > 0) text += fmt::format("; up to {} updates are applied twice", course.updates_twice);
  return text + ".";
}

std::string unknown_text(const JobCourse& course) {
  std::string text = fmt::format("Unknown, and counted as 0: {}", fmt::join(course.unknown, ", "));
  std::vector<std::string> even;
  for (const BreakEven& one : course.break_even) {
    even.push_back(fmt::format("{} for a goodput of {}", duration_text(one.seconds), percent_text(one.goodput)));
  }
  if (!even.empty()) text += fmt::format("; in all they may take, for each failure, {}", fmt::join(even, ", "));
  return text + ".";
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 2 * kMinute) return format_quantity(seconds, Dimension::seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.3g} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.3g} h", seconds / kHour);
  return fmt::format("{:.3g} d", seconds / kDay);
}

std::string course_label(CourseState state) {
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
    case CourseState::evaluating:
      return "evaluating";
  }
  return "";
}

std::vector<std::string> course_sentences(const JobCourse& course) {
  std::vector<std::string> sentences;
  std::string done = steps_text(std::floor(course.steps_done + 1e-6));
  if (course.steps_done != course.steps) done += " of " + steps_text(course.steps);
  std::string goodput = percent_text(course.goodput());
  if (course.least_goodput) {
    goodput += fmt::format(" ({} to {} where chance draws again, {} times)", percent_text(*course.least_goodput),
                           percent_text(*course.greatest_goodput), course.redraws);
  }
  sentences.push_back(fmt::format("{} steps in {}; goodput {}; policy {}.", done, duration_text(course.seconds),
                                  goodput, course.policy));
  if (!course.ended.empty()) sentences.push_back("It ended early: " + course.ended + ".");
  sentences.push_back(failures_text(course));
  if (course.evaluations > 0) sentences.push_back(fmt::format("{} evaluations.", course.evaluations));
  if (!course.unknown.empty()) sentences.push_back(unknown_text(course));
  if (course.best_interval_s && course.best_availability) {
    sentences.push_back(
        fmt::format("Checkpoints lose least every {} ({:.0f} steps): sqrt(2 x {} to a failure x {} to write one); that "
                    "leaves {} of "
                    "the time, before detecting, restarting and loading.",
                    duration_text(*course.best_interval_s), *course.best_interval_s / course.undisturbed_step_s,
                    duration_text(course.mttf_s),
                    duration_text(*course.best_interval_s * *course.best_interval_s / 2 / course.mttf_s),
                    percent_text(*course.best_availability)));
  }
  return sentences;
}

std::string course_text(const JobCourse& course) {
  std::string text;
  std::string head = "the job     ";
  for (const std::string& sentence : course_sentences(course)) {
    text += wrapped_list(head, words_of(shown(sentence)), "");
    head.assign(head.size(), ' ');
  }
  TextTable table;
  table.add({"where the job's time goes", "time", "of the job"});
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    const double seconds = course.time_s[i];
    if (seconds <= 0) continue;
    table.add({"  " + course_label(static_cast<CourseState>(i)), duration_text(seconds),
               percent_text(seconds / course.seconds)});
  }
  return text + "\n" + table.text();
}

}  // namespace tandem
