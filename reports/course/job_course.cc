#include "reports/course/job_course.h"

#include "topologies/base/error.h"

namespace tandem {

const char* name_of(CourseState state) {
  switch (state) {
    case CourseState::training:
      return "training";
    case CourseState::slower:
      return "slower";
    case CourseState::lost:
      return "lost";
    case CourseState::checkpointing:
      return "checkpointing";
    case CourseState::detecting:
      return "detecting";
    case CourseState::waiting:
      return "waiting";
    case CourseState::restarting:
      return "restarting";
    case CourseState::loading:
      return "loading";
    case CourseState::evaluating:
      return "evaluating";
  }
  TANDEM_UNREACHABLE("a CourseState outside its enumerators");
}

}  // namespace tandem
