// The course of a job for people.
#pragma once

#include <string>
#include <vector>

#include "reports/course/job_course.h"

namespace tandem {

std::string duration_text(double seconds);    // "1.5 s", "19 min", "3.1 h", "54 d"
std::string course_label(CourseState state);  // "steps that are done again"

// What the course says beside the times of its states, a sentence each.
std::vector<std::string> course_sentences(const JobCourse& course);
// Several lines, the last one ended.
std::string course_text(const JobCourse& course);

}  // namespace tandem
