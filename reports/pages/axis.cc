#include "reports/pages/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/base/text_table.h"
#include "topologies/base/units.h"

namespace tandem::pages {
namespace {

// Returns the distance between marks: 1, 2 or 5 times a power of ten, so that the span has 4 to 10 of them.
double mark_distance(double span) {
  const double power = std::pow(10.0, std::floor(std::log10(span / 4)));
  for (const double factor : {5.0, 2.0}) {
    if (span / (power * factor) >= 4) return power * factor;
  }
  return power;
}

// The marks of a logarithmic axis are at powers of this, because sizes and numbers of devices are powers of two.
double base_of(Unit unit) {
  return unit == Unit::bytes ? 4 : unit == Unit::count ? 2 : 10;
}

// "1.500 ms" as "1.5 ms": marks are round.
std::string mark_text(double value, Unit unit) {
  std::string text = value_text(value, unit);
  const std::size_t blank = std::min(text.find(' '), text.size());
  const std::size_t point = text.find('.');
  if (point >= blank) return text;
  std::size_t end = text.find_last_not_of('0', blank - 1);
  if (end == point) --end;
  return text.erase(end + 1, blank - end - 1);
}

double logarithm(double value, double base) {
  const double exponent = std::log(value) / std::log(base);
  // Powers of the base themselves come out exactly.
  return std::abs(exponent - std::round(exponent)) < 1e-9 ? std::round(exponent) : exponent;
}

}  // namespace

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::nanoseconds:
      return time_text(value);
    case Unit::bytes:
      return size_text(std::llround(value));
    case Unit::bytes_per_second:
      return format_quantity(value, Dimension::bytes_per_second);
    case Unit::percent:
      return fmt::format("{:.4g} %", value * 100);
    case Unit::count:
      return fmt::format("{}", std::llround(value));
    case Unit::number:
      break;
  }
  return fmt::format("{:.4g}", value);
}

void Axis::hold(double value) {
  if (!std::isfinite(value) || (is_logarithmic && value <= 0)) return;
  low = is_empty ? value : std::min(low, value);
  high = is_empty ? value : std::max(high, value);
  is_empty = false;
}

void Axis::round() {
  if (is_logarithmic) {
    if (is_empty) low = high = 1;
    const double base = base_of(unit);
    const double from = std::floor(logarithm(low, base));
    const double to = std::max(from + 1, std::ceil(logarithm(high, base)));
    low = std::pow(base, from);
    high = std::pow(base, to);
    return;
  }
  if (!(high > low)) high = low + (low == 0 ? 1 : std::abs(low));
  const double distance = mark_distance(high - low);
  low = std::floor(low / distance + 1e-9) * distance;
  high = std::ceil(high / distance - 1e-9) * distance;
}

bool Axis::can_show(double value) const {
  return std::isfinite(value) && (!is_logarithmic || value > 0);
}

double Axis::share(double value) const {
  if (is_logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::vector<Mark> Axis::marks() const {
  std::vector<Mark> marks;
  if (is_logarithmic) {
    const double base = base_of(unit);
    const int from = static_cast<int>(std::lround(logarithm(low, base)));
    const int to = static_cast<int>(std::lround(logarithm(high, base)));
    const int every = (to - from) / 10 + 1;
    for (int exponent = from; exponent <= to; exponent += every) {
      const double value = std::pow(base, exponent);
      marks.push_back({.value = value, .text = mark_text(value, unit)});
    }
    return marks;
  }
  const double distance = mark_distance(high - low);
  for (int i = 0; low + i * distance <= high + distance * 1e-6; ++i) {
    const double value = std::abs(low + i * distance) < distance * 1e-9 ? 0 : low + i * distance;
    marks.push_back({.value = value, .text = mark_text(value, unit)});
  }
  return marks;
}

}  // namespace tandem::pages
