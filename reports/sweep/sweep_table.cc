#include "reports/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "topologies/base/portable_math.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

// Returns the time during which a device did any work.
Nanoseconds busy_time(const PerStep& per_step) {
  Nanoseconds busy = 0;
  for (const StepPart& part : step_parts()) busy += per_step.*part.time;
  return busy - per_step.idle;
}

// Returns a field of a point ("devices", or a swept field) as a number.
std::optional<double> number_of(const SweptPoint& point, const std::string& field) {
  if (field == "devices") return point.devices;
  for (const auto& [path, text] : point.values) {
    if (path == field) return parse_quantity(text, Dimension::bytes);
  }
  return std::nullopt;
}

using Best = std::map<double, double>;  // throughput by value

std::map<std::string, Best> best_by_strategy(const SweepTable& table, const std::string& field) {
  std::map<std::string, Best> best;
  for (const SweptPoint& point : table.points) {
    const auto value = number_of(point, field);
    if (point.state != PointState::done || !value || *value <= 0 || point.throughput <= 0) continue;
    double& known = best[point.strategy][*value];
    known = std::max(known, point.throughput);
  }
  return best;
}

// Adds the points where one strategy overtakes the other between neighbouring values that both have.
void add_crossings(const std::string& field, const std::string& one, const Best& best_of_one, const std::string& other,
                   const Best& best_of_other, std::vector<Crossing>& crossings) {
  std::optional<std::pair<double, double>> before;  // the last value at which one was faster, and by how much
  for (const auto& [value, throughput] : best_of_one) {
    const auto found = best_of_other.find(value);
    if (found == best_of_other.end()) continue;
    const double lead = portable::log(throughput / found->second);
    if (lead == 0) continue;
    if (before && (before->second > 0) != (lead > 0)) {
      const double part = before->second / (before->second - lead);
      crossings.push_back({.field = field,
                           .below = lead > 0 ? other : one,
                           .above = lead > 0 ? one : other,
                           .from = before->first,
                           .to = value,
                           .at = before->first * portable::pow(value / before->first, part)});
    }
    before = {value, lead};
  }
}

}  // namespace

const char* name_of(PointState state) {
  static constexpr std::array kNames{"done", "does not fit", "failed", "lost", "not run"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string limit_of(const Report& report) {
  if (!report.has_parts()) return std::string(kUnknownLimit);
  const PerStep& step = report.summary.per_step;
  const Nanoseconds compute = step.compute + step.update + step.other;
  const auto& others = report.summary.other_devices;
  if (report.parameter_servers > 0 && others && busy_time(others->per_step) > compute) return "server";
  const std::array<std::pair<Nanoseconds, const char*>, 4> parts{{{compute, "compute"},
                                                                  {step.exposed_communication, "communication"},
                                                                  {step.exposed_input, "input"},
                                                                  {step.idle, "waiting"}}};
  const auto by_time = [](const auto& a, const auto& b) { return a.first < b.first; };
  return std::max_element(parts.begin(), parts.end(), by_time)->second;
}

namespace {

std::optional<SweptPoint::Course> swept_course(const Report& report) {
  if (!report.course) return std::nullopt;
  const JobCourse& course = *report.course;
  const double goodput = course.goodput();
  return SweptPoint::Course{.seconds = course.seconds,
                            .goodput = goodput,
                            .least_goodput = course.least_goodput.value_or(goodput),
                            .greatest_goodput = course.greatest_goodput.value_or(goodput),
                            .ended = course.ended};
}

std::optional<SweptPoint::Evaluation> swept_evaluation(const Report& report) {
  if (!report.evaluations || report.evaluations->done.empty()) return std::nullopt;
  return SweptPoint::Evaluation{.median = report.evaluations->median_time(), .share = report.evaluations->share()};
}

double throughput_of(const Report& report) {
  if (!report.course) return report.throughput();
  if (!report.course->ended.empty()) return 0;  // its job comes to no end
  return report.course->seconds > 0 ? report.units_per_step * report.course->steps_done / report.course->seconds : 0;
}

}  // namespace

SweptPoint swept_point(const Report& report, int devices) {
  return {.values = {},
          .state = PointState::done,
          .strategy = report.strategy,
          .devices = devices,
          .unit = report.throughput_unit,
          .throughput = throughput_of(report),
          .step_time = report.summary.step_time.mean,
          .median_step_time = report.summary.step_time.median,
          .long_steps = report.summary.step_time.long_steps,
          .per_step = report.summary.per_step,
          .limit = limit_of(report),
          .memory = report.memory,
          .rates = rates_of(report),
          .expected_error = report.expected_error ? report.expected_error->intervals : std::vector<ErrorInterval>(),
          .currency = report.price ? report.price->currency : "",
          .course = swept_course(report),
          .evaluation = swept_evaluation(report)};
}

int SweepTable::count(PointState state) const {
  return static_cast<int>(
      std::count_if(points.begin(), points.end(), [&](const SweptPoint& point) { return point.state == state; }));
}

std::vector<std::string> SweepTable::notes() const {
  std::vector<std::string> order;
  std::map<std::string, int> counts;
  for (const SweptPoint& point : points) {
    for (const std::string& note : point.unused) {
      if (counts[note]++ == 0) order.push_back(note);
    }
  }
  const int all = count(PointState::done);
  for (std::string& note : order) {
    const int with_it = counts[note];
    if (with_it < all) note += fmt::format(" ({} of {} points)", with_it, all);
  }
  return order;
}

std::vector<std::size_t> SweepTable::ranking() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].state == PointState::done) places.push_back(i);
  }
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    if (points[a].throughput != points[b].throughput) return points[a].throughput > points[b].throughput;
    return points[a].devices < points[b].devices;
  });
  return places;
}

std::vector<std::size_t> SweepTable::not_told_from_best() const {
  const std::vector<std::size_t> ranked = ranking();
  if (ranked.empty() || !points[ranked.front()].course) return {};
  // What each would be at the ends of its range, as its throughput is at its own goodput.
  const auto reached = [&](std::size_t place, double goodput) {
    const SweptPoint& point = points[place];
    return point.course->goodput > 0 ? point.throughput * goodput / point.course->goodput : 0;
  };
  const double least = reached(ranked.front(), points[ranked.front()].course->least_goodput);
  std::vector<std::size_t> others;
  for (const std::size_t place : ranked) {
    const auto& course = points[place].course;
    if (place != ranked.front() && course && reached(place, course->greatest_goodput) >= least) others.push_back(place);
  }
  return others;
}

std::vector<std::size_t> SweepTable::pareto_front() const {
  std::vector<std::size_t> places = ranking();
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return points[a].devices < points[b].devices; });
  std::vector<std::size_t> front;
  for (const std::size_t place : places) {
    if (front.empty() || points[place].throughput > points[front.back()].throughput) front.push_back(place);
  }
  return front;
}

std::string SweepTable::currency() const {
  const std::vector<std::size_t> done = ranking();
  const auto is_like_first = [&](std::size_t place) { return points[place].currency == points[done.front()].currency; };
  return !done.empty() && std::all_of(done.begin(), done.end(), is_like_first) ? points[done.front()].currency : "";
}

std::vector<std::size_t> SweepTable::cost_front() const {
  if (currency().empty()) return {};
  std::vector<std::size_t> places = ranking();
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return points[a].rates.cost_per_unit < points[b].rates.cost_per_unit;
  });
  std::vector<std::size_t> front;
  for (const std::size_t place : places) {
    if (front.empty() || points[place].throughput > points[front.back()].throughput) front.push_back(place);
  }
  return front;
}

std::vector<Crossing> SweepTable::crossings() const {
  std::vector<std::string> numeric{"devices"};
  numeric.insert(numeric.end(), fields.begin(), fields.end());
  std::vector<Crossing> all;
  for (const std::string& field : numeric) {
    const std::map<std::string, Best> best = best_by_strategy(*this, field);
    for (auto one = best.begin(); one != best.end(); ++one) {
      for (auto other = std::next(one); other != best.end(); ++other) {
        add_crossings(field, one->first, one->second, other->first, other->second, all);
      }
    }
  }
  return all;
}

}  // namespace tandem
