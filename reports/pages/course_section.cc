// The course of a job that loses workers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/base/text_table.h"
#include "reports/course/course_text.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"

namespace tandem::pages {
namespace {

// The color of each state, by its place.
constexpr const char* kClasses[kCourseStates] = {"compute", "update",        "more",  "input", "other",
                                                 "idle",    "communication", "total", "less"};

std::vector<BarPart> parts_of_slice(const std::array<double, kCourseStates>& shares) {
  std::vector<BarPart> parts;
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    parts.push_back({.name = course_label(static_cast<CourseState>(i)), .css_class = kClasses[i], .value = shares[i]});
  }
  return parts;
}

}  // namespace

std::string course_section(const Report& report) {
  if (!report.course) return "";
  const JobCourse& course = *report.course;
  std::array<double, kCourseStates> whole = course.time_s;
  for (double& share : whole) share /= std::max(course.seconds, 1e-9);
  std::vector<Bar> bars{{.label = "the whole job", .parts = parts_of_slice(whole)}};
  const double slice_s = course.seconds / static_cast<double>(std::max<std::size_t>(1, course.slices.size()));
  for (std::size_t i = 0; i < course.slices.size(); ++i) {
    bars.push_back({.label = "from " + duration_text(static_cast<double>(i) * slice_s),
                    .parts = parts_of_slice(course.slices[i]),
                    .is_thin = true});
  }
  HtmlTable table("where the job's time goes", {"state", "time", "of the job"});
  for (std::size_t i = 0; i < kCourseStates; ++i) {
    if (course.time_s[i] <= 0) continue;
    table.add({course_label(static_cast<CourseState>(i)), duration_text(course.time_s[i]), percent_text(whole[i])});
  }
  std::string text;
  for (const std::string& sentence : course_sentences(course)) text += paragraph(sentence);
  return section("The whole job", text + stacked_bars("What the job's time is spent on", bars, Unit::percent) +
                                      folded("As a table", std::move(table).finish()));
}

}  // namespace tandem::pages
