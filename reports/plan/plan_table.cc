#include "reports/plan/plan_table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

std::string_view name_of(PlanGoal goal) {
  switch (goal) {
    case PlanGoal::time:
      return "time";
    case PlanGoal::cost:
      return "cost";
    case PlanGoal::energy:
      return "energy";
  }
  TANDEM_UNREACHABLE("a goal");
}

double PlanTable::value(const SweptPoint& point) const {
  if (point.state != PointState::done || point.throughput <= 0) return kNever;
  if (goal == PlanGoal::time) return 1 / point.throughput;
  const double spent = goal == PlanGoal::cost ? point.rates.cost_per_unit : point.rates.energy_per_unit_j;
  return spent > 0 ? spent : double{kNever};
}

double PlanTable::value(std::size_t place) const {
  return value(sweep.points[place]);
}

std::vector<double> PlanTable::values() const {
  std::vector<double> values;
  for (const SweptPoint& point : sweep.points) {
    if (point.state == PointState::done) values.push_back(value(point));
  }
  return values;
}

double PlanTable::least(std::size_t place) const {
  const SweptPoint& point = sweep.points[place];
  const PlannedPoint& known = planned[place];
  if (point.state == PointState::failed || point.state == PointState::does_not_fit) return kNever;
  if (point.state == PointState::done) return known.is_whole ? value(place) : value(place) * (1 - kQuickError);
  if (known.units <= 0) return 0;
  const double seconds = known.least_step_s / known.units;
  if (goal == PlanGoal::time) return seconds;
  return seconds * (goal == PlanGoal::cost ? known.price_per_s : known.power_w);
}

std::vector<std::size_t> PlanTable::ranking() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (value(i) < kNever) places.push_back(i);
  }
  std::ranges::stable_sort(places, [this](std::size_t a, std::size_t b) {
    return value(a) != value(b) ? value(a) < value(b) : sweep.points[a].devices < sweep.points[b].devices;
  });
  return places;
}

double PlanTable::least_of_all() const {
  double smallest = kNever;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) smallest = std::min(smallest, least(i));
  return smallest;
}

std::vector<const HandChange*> PlanTable::first_changes() const {
  std::vector<const HandChange*> changes;
  for (const HandChange& change : by_hand) {
    if (value(change.point) < value(usual)) changes.push_back(&change);
  }
  std::ranges::stable_sort(changes, {}, [this](const HandChange* change) { return value(change->point); });
  return changes;
}

double PlanTable::gap() const {
  const std::vector<std::size_t> ranks = ranking();
  if (ranks.empty()) return kNever;
  return std::max(0.0, value(ranks.front()) / least_of_all() - 1);
}

std::size_t PlanTable::simulated() const {
  return static_cast<std::size_t>(sweep.count(PointState::done));
}

std::size_t PlanTable::ruled_out() const {
  const std::vector<std::size_t> ranks = ranking();
  if (ranks.empty()) return 0;
  const double last = value(ranks[std::min(std::max<std::size_t>(1, wanted), ranks.size()) - 1]);
  std::size_t count = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (sweep.points[i].state == PointState::not_run && least(i) >= last) ++count;
  }
  return count;
}

}  // namespace tandem
