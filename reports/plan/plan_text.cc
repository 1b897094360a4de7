#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reports/base/text_table.h"
#include "reports/plan/plan_table.h"
#include "reports/run/model_work.h"
#include "topologies/base/shown.h"
#include "topologies/price.h"

namespace tandem {
namespace {

constexpr std::size_t kMostByHand = 3;

// A value of the goal as people read it: the time of a step with the best point's batch, a cost, or an energy.
class Values {
 public:
  Values(const PlanTable& table, std::size_t best)
      : goal_(table.goal),
        units_(table.planned[best].units),
        currency_(table.sweep.points[best].currency),
        unit_(table.sweep.points[best].unit) {
    if (unit_.ends_with("/s")) unit_.resize(unit_.size() - 2);
  }

  std::string text(double value) const {
    if (goal_ == PlanGoal::cost)
      return fmt::format("{} per million {}", money_text(value * kMillion, currency_), unit_);
    if (goal_ == PlanGoal::energy) return fmt::format("{} per million {}", energy_text(value * kMillion), unit_);
    return time_text(value * units_ * 1e9);
  }

 private:
  PlanGoal goal_;
  double units_;
  std::string currency_, unit_;
};

// The best points, with the fields of which the space has several values.
SweepTable shown_points(const PlanTable& table, const std::vector<std::size_t>& places) {
  SweepTable shown{.scenario = table.sweep.scenario, .engine = table.sweep.engine, .fields = {}, .points = {}};
  const std::vector<SweptPoint>& points = table.sweep.points;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < table.sweep.fields.size(); ++i) {
    const auto differs = [&](const SweptPoint& point) { return point.values[i] != points.front().values[i]; };
    if (points.size() > 1 && std::ranges::none_of(points, differs)) continue;
    kept.push_back(i);
    shown.fields.push_back(table.sweep.fields[i]);
  }
  for (const std::size_t place : places) {
    SweptPoint point = points[place];
    point.values.clear();
    for (const std::size_t i : kept) point.values.push_back(points[place].values[i]);
    shown.points.push_back(std::move(point));
  }
  return shown;
}

// The values of one point, of the fields of which the space has several.
SweepTable shown_values(const PlanTable& table, const std::vector<std::pair<std::string, std::string>>& values) {
  SweepTable shown = shown_points(table, {});
  SweptPoint& point = shown.points.emplace_back();
  for (const auto& value : values) {
    if (std::ranges::find(shown.fields, value.first) != shown.fields.end()) point.values.push_back(value);
  }
  return shown;
}

std::string head_text(const PlanTable& table) {
  return fmt::format("{}: the best of {} points for {}{}\n", shown(table.sweep.scenario), table.sweep.points.size(),
                     name_of(table.goal), table.sweep.engine.empty() ? "" : ", on engine " + shown(table.sweep.engine));
}

std::string best_text(const PlanTable& table, const SweepTable& shown, std::size_t best) {
  const SweptPoint& point = shown.points.front();
  std::string text = fmt::format("best: {}: {} a step, {} on {} devices", values_text(shown, point),
                                 time_text(point.step_time), rate_text(point.throughput, point.unit), point.devices);
  if (table.goal != PlanGoal::time) text += ", " + Values(table, best).text(table.value(best));
  if (point.has_parts()) text += ", limited by " + point.limit;
  return wrapped_list("", words_of(text), "");
}

// What the search proves.
std::string certificate_text(const PlanTable& table, std::size_t best) {
  const double gap = table.gap();
  std::string text;
  if (gap == 0) {
    text = "certain: no point of this space takes less";
  } else if (std::isfinite(gap)) {
    text = fmt::format("no point of this space takes less than {}: the best is within {} of it",
                       Values(table, best).text(table.least_of_all()), percent_text(gap));
  } else {
    text = "not certain: of some points nothing is known";
  }
  if (!table.stopped.empty()) text += "; " + table.stopped;
  return wrapped_list("", words_of(text), "");
}

std::string counts_text(const PlanTable& table) {
  const std::size_t left = static_cast<std::size_t>(table.sweep.count(PointState::not_run)) - table.ruled_out();
  std::string text = fmt::format("points: {} simulated", table.simulated());
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(static_cast<std::size_t>(table.sweep.count(PointState::does_not_fit)), "do not fit");
  add(static_cast<std::size_t>(table.sweep.count(PointState::failed)), "cannot run");
  add(table.ruled_out(), "ruled out by their bounds");
  add(static_cast<std::size_t>(table.sweep.count(PointState::lost)), "lost with their processes");
  add(left, "not looked at to the end");
  return text + "\n";
}

// Which of the first ones are nearer to the best one than predictions have been to measurements.
std::string order_text(const PlanTable& table, const std::vector<std::size_t>& ranks) {
  const SweptPoint& best = table.sweep.points[ranks.front()];
  if (best.expected_error.empty() || ranks.size() < 2) return "";
  const ErrorInterval error = best.expected_error.back();
  const auto is_near = [&](std::size_t place) {
    const auto& other = table.sweep.points[place].expected_error;
    return table.value(place) * (1 + (other.empty() ? error : other.back()).low) <
           table.value(ranks.front()) * (1 + error.high);
  };
  const auto near = std::ranges::count_if(ranks, is_near);
  if (near < 2) return "";
  return wrapped_list(
      "",
      words_of(fmt::format("their order is not certain: {} measured steps were within {} of predicted ones, and the "
                           "first {} are nearer to each other; a measured step of the first two would tell",
                           level_text(error.level), interval_text(error), near)),
      "");
}

// What each difference between the scenario and the best point gives for itself.
std::string by_hand_text(const PlanTable& table, std::size_t best) {
  if (table.by_hand.size() < 2) return "";
  const std::vector<const HandChange*> changes = table.first_changes();
  if (changes.empty()) return "no single one of its differences from the best makes it better\n";
  std::string text = "by hand, change first: ";
  for (std::size_t i = 0; i < std::min(changes.size(), kMostByHand); ++i) {
    SweepTable fields{.scenario = "", .engine = "", .fields = {}, .points = {{.values = {}}}};
    for (const HandChange::Field& one : changes[i]->fields) {
      fields.fields.push_back(one.field);
      fields.points.front().values.emplace_back(one.field, one.to);
    }
    text += fmt::format("{}{}: {}", i > 0 ? "; or " : "", values_text(fields, fields.points.front()),
                        Values(table, best).text(table.value(changes[i]->point)));
  }
  return wrapped_list("", words_of(text), "");
}

std::string usual_text(const PlanTable& table, std::size_t best) {
  const SweptPoint& usual = table.usual;
  if (usual.state == PointState::not_run) return "";
  if (usual.state != PointState::done)
    return wrapped_list("", words_of("as it is, the scenario has no result: " + usual.problem), "");
  if (usual.memory && !usual.memory->is_within())
    return wrapped_list(
        "",
        words_of(fmt::format("as it is, the scenario takes {} a step, with more memory than there is: {}",
                             time_text(usual.step_time), memory_text(*usual.memory))),
        "");
  return fmt::format("as it is, the scenario takes {} a step; the best is {:.2f} times as good\n",
                     time_text(usual.step_time), table.value(usual) / table.value(best)) +
         by_hand_text(table, best);
}

std::string step_or_cost(const PlanTable& table, std::size_t best, const OtherPlan& other) {
  return table.goal == PlanGoal::time ? time_text(other.best.step_time) : Values(table, best).text(other.value);
}

// What the same space gives with other machines.
std::string others_text(const PlanTable& table, std::size_t best) {
  std::string text;
  for (const OtherPlan& other : table.others) {
    std::string line = fmt::format("with {}: ", other.change);
    if (!other.problem.empty()) {
      line += other.problem;
    } else {
      const double gain = table.value(best) / other.value - 1;
      const bool is_worse = other.value > table.value(best);
      const SweepTable shown = shown_values(table, other.best.values);
      line += fmt::format("{}, {}{} {}, at {}", step_or_cost(table, best, other),
                          other.gap > 0 ? (is_worse ? "at most " : "at least ") : "",
                          percent_text(is_worse ? other.value / table.value(best) - 1 : gain),
                          is_worse ? "worse" : "better",
                          other.is_same_point ? "the same point" : values_text(shown, shown.points.front()));
    }
    text += wrapped_list("", words_of(line), "");
  }
  return text;
}

bool has_memory_figures(const SweptPoint& point) {
  return point.memory && point.memory->available > 0;
}

std::string memory_note(const PlanTable& table) {
  const std::vector<SweptPoint>& points = table.sweep.points;
  const auto is_unknown = [](const SweptPoint& point) { return point.memory && point.memory->available == 0; };
  if (std::ranges::none_of(points, is_unknown) || std::ranges::any_of(points, has_memory_figures)) return "";
  return wrapped_list("", words_of("the topology states no memory of its devices: no point was ruled out for that"),
                      "");
}

// The point that needs least memory, where none fits.
std::string least_memory_text(const PlanTable& table) {
  const std::vector<SweptPoint>& points = table.sweep.points;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].state == PointState::does_not_fit && has_memory_figures(points[i])) places.push_back(i);
  }
  if (places.empty()) return "";
  const auto lacks = [&points](std::size_t i) { return points[i].memory->total() - points[i].memory->available; };
  const std::size_t least = *std::ranges::min_element(places, {}, lacks);
  const SweepTable shown = shown_points(table, {least});
  const std::string text = fmt::format("no point that can run fits into memory. The one that lacks least, {}: {}: {}",
                                       memory_size_text(lacks(least)), values_text(shown, shown.points.front()),
                                       memory_text(*points[least].memory));
  return "\n" + wrapped_list("", words_of(text), "");
}

// What is known without a best point.
std::string nothing_text(const PlanTable& table) {
  std::string text = counts_text(table);
  if (!table.stopped.empty()) text += "no best point is known; " + table.stopped + "\n";
  if (table.sweep.count(PointState::done) > 0)
    text += fmt::format("no best point: the machines of no point have a {}\n",
                        table.goal == PlanGoal::cost ? "price" : "power");
  text += least_memory_text(table);
  std::vector<std::size_t> failed;
  for (std::size_t i = 0; i < table.sweep.points.size(); ++i) {
    if (table.sweep.points[i].state == PointState::failed) failed.push_back(i);
  }
  return text + problems_text(shown_points(table, failed));
}

}  // namespace

std::string plan_text(const PlanTable& table) {
  std::string text = head_text(table);
  std::vector<std::size_t> ranks = table.ranking();
  if (ranks.empty()) return text + nothing_text(table);
  const std::size_t best = ranks.front();
  ranks.resize(std::min(std::max<std::size_t>(table.wanted, 1), ranks.size()));
  const SweepTable shown = shown_points(table, ranks);
  std::vector<std::size_t> all(ranks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  text += best_text(table, shown, best) + certificate_text(table, best) + counts_text(table) + memory_note(table);
  return text + "\n" + rows_text(shown, all) + order_text(table, ranks) + usual_text(table, best) +
         others_text(table, best);
}

}  // namespace tandem
