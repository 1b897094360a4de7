// JobCourse as JSON, and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/course/job_course.h"

namespace tandem {

class JsonField;

nlohmann::ordered_json course_to_json(const JobCourse& course);
// Reads a course. Adds what is missing or wrong to the field's problems.
JobCourse course_from_json(const JsonField& field);

}  // namespace tandem
