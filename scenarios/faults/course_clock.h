// The clock of a course: what each of its seconds was spent on. Steps count for nothing until a checkpoint keeps them;
// a failure makes lost time of them.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "reports/course/job_course.h"

namespace tandem {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

class CourseClock {
 public:
  double now_s() const { return now_s_; }

  // Time passes in a state other than training, or in training (steps that nobody keeps yet), until `end_s`. `useful_s`
  // is what the steps would have taken on the undisturbed cluster; the rest of the time is `slower`.
  void pass(CourseState state, double end_s);
  void train(double end_s, double useful_s);

  void commit();  // keeps all steps so far
  // Keeps the steps so far once this date has come, unless they are lost before or another date is set; then calls
  // `kept`.
  void commit_at(double date_s, std::function<void()> kept);
  double commit_date_s() const { return commit_date_s_; }  // kNever: none is set
  void lose();                                             // the steps that are not kept
  void lose_last(double useful_s);                         // so much of the last steps, which may be kept already

  // Adds the times to the course.
  void report(JobCourse& course) const;

 private:
  void commit_due();  // if the date has come
  struct Part {
    CourseState state = CourseState::training;
    double from_s = 0, to_s = 0;
    double useful_s = 0;  // of `training`, which holds what is slower, too
  };

  double now_s_ = 0;
  std::vector<Part> parts_;  // in their order; those of lost steps say so
  std::size_t kept_ = 0;     // so many of them are kept
  std::size_t covered_ = 0;  // and so many will be, at the date
  double commit_date_s_ = kNever;
  std::function<void()> on_kept_;
};

}  // namespace tandem
