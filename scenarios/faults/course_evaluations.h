// When a course evaluates: after every so many steps, those that are done again included.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {

class CourseEvaluations {
 public:
  explicit CourseEvaluations(double every) : every_(every) {}

  // Returns the next step after which there is one, when so many steps are done; infinite: there is none.
  double next(double done) const {
    if (every_ <= 0) return std::numeric_limits<double>::infinity();
    return (std::floor(done / every_ + kRounding) + 1) * every_;
  }
  bool is_due(double done) const {
    return every_ > 0 && done > evaluated_ && std::abs(done - std::round(done / every_) * every_) < kRounding;
  }
  void did(double done) { evaluated_ = done; }
  void go_back(double done) { evaluated_ = std::min(evaluated_, done); }

 private:
  static constexpr double kRounding = 1e-9;
  double every_;
  double evaluated_ = 0;  // up to this step
};

}  // namespace tandem
