// An axis of a picture: the places of its values and of its marks.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::pages {

// The unit of the values, which decides the text of a mark.
enum class Unit { number, nanoseconds, bytes, bytes_per_second, percent, count };
std::string value_text(double value, Unit unit);

struct Mark {
  double value = 0;
  std::string text;
};

struct Axis {
  std::string name;
  Unit unit = Unit::number;
  bool is_logarithmic = false;
  double low = 0;  // at the start; greater than 0 on a logarithmic axis
  double high = 1;
  bool is_empty = true;  // holds no value yet

  // Widens the axis to hold the value. A logarithmic axis leaves out values of 0 and less.
  void hold(double value);
  // Rounds the ends to marks, and gives some length to an axis that has none.
  void round();
  bool can_show(double value) const;
  double share(double value) const;  // 0 at the low end, 1 at the high one
  std::vector<Mark> marks() const;   // 2 to 12
};

}  // namespace tandem::pages
