// The course of a job for people.
#pragma once

#include <string>

#include "reports/course/job_course.h"

namespace tandem {

std::string duration_text(double seconds);  // "1.5 s", "19 min", "3.1 h", "54 d 2 h"

// Several lines, the last one ended.
std::string course_text(const JobCourse& course);

}  // namespace tandem
