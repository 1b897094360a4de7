#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/base/text_table.h"
#include "reports/course/course_text.h"
#include "reports/run/model_work.h"
#include "reports/sweep/sweep_table.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"
#include "topologies/price.h"

namespace tandem {
namespace {

constexpr std::size_t kMostFast = 12;     // points in a table unless all are asked for
constexpr std::size_t kMostProblems = 8;  // different ones
constexpr int kMostCellWidth = 40;

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

// Returns the last part of each field's path if it is unique; strategy.name becomes "strategy".
std::vector<std::string> heads_of(const SweepTable& table) {
  std::map<std::string, int> uses;
  for (const std::string& field : table.fields) ++uses[last_part(field)];
  std::vector<std::string> heads;
  for (const std::string& field : table.fields) {
    const std::string last = last_part(field);
    heads.push_back(last == "name" ? field.substr(0, field.rfind('.')) : uses[last] > 1 ? field : last);
  }
  return heads;
}

std::string cell(const std::string& text) {
  return cut_back(text, kMostCellWidth);
}

std::string counts_text(const SweepTable& table) {
  std::vector<std::string> parts;
  for (const PointState state : {PointState::does_not_fit, PointState::failed, PointState::lost, PointState::not_run}) {
    const int count = table.count(state);
    const char* name = state == PointState::does_not_fit && count > 1 ? "do not fit" : name_of(state);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, name));
  }
  std::string text =
      fmt::format("{}: {} of {} points", shown(table.scenario), table.count(PointState::done), table.points.size());
  if (!table.engine.empty()) text += " on engine " + shown(table.engine);
  for (const std::string& part : parts) text += ", " + part;
  return text + "\n";
}

// Returns " (median 106.0 ms)" where some steps are longer than others.
std::string median_text(const SweptPoint& point) {
  return point.long_steps ? fmt::format(" (median {})", time_text(point.median_step_time)) : "";
}

std::string seconds_text(double seconds) {
  return time_text(static_cast<Nanoseconds>(seconds * 1e9));
}

// With a course, where another point may be as good by chance, there is no best one.
std::string undecided_text(const SweepTable& table, const SweptPoint& first, const std::vector<std::size_t>& others) {
  std::string text =
      fmt::format("no winner: where failures are drawn again, {} is not told from ", values_text(table, first));
  for (std::size_t i = 0; i < others.size(); ++i)
    text += (i == 0 ? "" : "; ") + values_text(table, table.points[others[i]]);
  return wrapped_list("", words_of(text), "");
}

std::string goodput_text(const SweptPoint::Course& course) {
  std::string text = percent_text(course.goodput);
  if (course.least_goodput < course.greatest_goodput) {
    text += fmt::format(" ({}..{})", short_percent(course.least_goodput), short_percent(course.greatest_goodput));
  }
  return text;
}

std::string best_text(const SweepTable& table, const SweptPoint& point) {
  if (const auto others = table.not_told_from_best(); !others.empty()) return undecided_text(table, point, others);
  return wrapped_list(
      "",
      words_of(fmt::format("best: {} with {}: {}{} on {} devices{}", rate_text(point.throughput, point.unit),
                           values_text(table, point), time_text(point.step_time), median_text(point), point.devices,
                           point.has_parts() ? ", limited by " + point.limit : "")),
      "");
}

// The points that no other one beats.
struct Fronts {
  std::vector<std::size_t> of_devices{}, of_cost{};

  Fronts() = default;
  explicit Fronts(const SweepTable& table) : of_devices(table.pareto_front()), of_cost(table.cost_front()) {}
  std::string marks(std::size_t place) const {
    const auto has = [place](const std::vector<std::size_t>& front) {
      return std::find(front.begin(), front.end(), place) != front.end();
    };
    return std::string(has(of_devices) ? "*" : "") + (has(of_cost) ? "+" : "");
  }
};

bool any_has(const SweepTable& table, double RunRates::*rate) {
  return std::any_of(table.points.begin(), table.points.end(),
                     [&](const SweptPoint& point) { return point.rates.*rate > 0; });
}

// Shows a row for each point, and marks those on the fronts.
std::string points_text(const SweepTable& table, const std::vector<std::size_t>& places, const Fronts& fronts) {
  const bool has_mfu = any_has(table, &RunRates::mfu), has_cost = any_has(table, &RunRates::cost_per_unit);
  TextTable text;
  std::vector<std::string> head{""};
  for (const std::string& name : heads_of(table)) head.push_back(name);
  for (const char* name : {"devices", "step", "throughput", "limit", "exposed", "memory"}) head.emplace_back(name);
  const bool has_course =
      std::ranges::any_of(table.points, [](const SweptPoint& point) { return point.course.has_value(); });
  if (has_course) {
    head.emplace_back("goodput");
    head.emplace_back("job");
  }
  const bool has_evaluation =
      std::ranges::any_of(table.points, [](const SweptPoint& point) { return point.evaluation.has_value(); });
  if (has_evaluation) head.emplace_back("evaluating");
  if (has_mfu) head.emplace_back("MFU");
  if (has_cost) head.emplace_back("per million");
  text.add(head);
  for (const std::size_t place : places) {
    const SweptPoint& point = table.points[place];
    std::vector<std::string> row{fronts.marks(place)};
    for (const auto& [path, value] : point.values) row.push_back(cell(value));
    const auto step = static_cast<double>(std::max<Nanoseconds>(1, point.step_time));
    row.push_back(std::to_string(point.devices));
    row.push_back(time_text(point.step_time) + median_text(point));
    row.push_back(rate_text(point.throughput, point.unit));
    row.push_back(point.limit);
    const double exposed = static_cast<double>(point.per_step.exposed_communication) / step;
    row.push_back(point.has_parts() ? percent_text(exposed) : "-");
    row.push_back(point.memory ? memory_size_text(point.memory->total()) : "-");
    if (has_course) {
      row.push_back(point.course ? goodput_text(*point.course) : "-");
      row.push_back(!point.course                 ? "-"
                    : point.course->ended.empty() ? duration_text(point.course->seconds)
                                                  : "ends early");
    }
    if (has_evaluation) {
      row.push_back(point.evaluation ? fmt::format("{} ({})", time_text(point.evaluation->median),
                                                   percent_text(point.evaluation->share))
                                     : "-");
    }
    if (has_mfu) row.push_back(point.rates.mfu > 0 ? percent_text(point.rates.mfu) : "-");
    if (has_cost) {
      const double cost = point.rates.cost_per_unit * kMillion;
      row.push_back(cost > 0 ? money_text(cost, point.currency) : "-");
    }
    text.add(row);
  }
  return text.text();
}

std::string crossing_text(const Crossing& crossing) {
  const auto number = [&](double value) {
    return value < 1e5 ? fmt::format("{:.4g}", value) : fmt::format("{:.3g}", value);
  };
  return fmt::format("  {} up to {} {}, {} from {} on; about {}\n", shown(crossing.below),
                     shown(last_part(crossing.field)), number(crossing.from), shown(crossing.above),
                     number(crossing.to), number(crossing.at));
}

std::string unused_text(const SweepTable& table) {
  const std::vector<std::string> notes = table.notes();
  std::string text = notes.empty() ? "" : "\nnotes\n";
  for (const std::string& note : notes) text += wrapped_list("  - ", words_of(note), "");
  return text;
}

}  // namespace

std::string values_text(const SweepTable& table, const SweptPoint& point) {
  const std::vector<std::string> heads = heads_of(table);
  std::string text;
  for (std::size_t i = 0; i < point.values.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", i < heads.size() ? heads[i] : point.values[i].first,
                        cell(point.values[i].second));
  }
  return text;
}

// Shows each problem once, with the number of points that have it and the first of them.
std::string problems_text(const SweepTable& table) {
  struct Group {
    int count = 0;
    const SweptPoint* first = nullptr;
  };
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (const SweptPoint& point : table.points) {
    if (point.state == PointState::done || point.state == PointState::not_run) continue;
    const std::string what =
        point.state == PointState::does_not_fit ? std::string(name_of(point.state)) : point.problem;
    Group& group = groups[what];
    if (group.count++ == 0) {
      order.push_back(what);
      group.first = &point;
    }
  }
  if (order.empty()) return "";
  std::string text = "\npoints without a result\n";
  for (std::size_t i = 0; i < std::min(order.size(), kMostProblems); ++i) {
    const Group& group = groups[order[i]];
    text += wrapped_list(fmt::format("  {:>5} ", group.count),
                         words_of(fmt::format("{}: {}", values_text(table, *group.first), group.first->problem)), "");
  }
  if (order.size() > kMostProblems) {
    text += fmt::format("  ... and {} other problems (--json has all)\n", order.size() - kMostProblems);
  }
  return text;
}

std::string rows_text(const SweepTable& table, const std::vector<std::size_t>& places) {
  return points_text(table, places, Fronts{});
}

std::string sweep_text(const SweepTable& table, bool all) {
  const std::vector<std::size_t> ranking = table.ranking();
  const Fronts fronts(table);
  std::string text = counts_text(table);
  if (!ranking.empty()) {
    text += best_text(table, table.points[ranking.front()]) + "\n";
    const std::size_t shown = all ? ranking.size() : std::min(ranking.size(), kMostFast);
    text += points_text(table, {ranking.begin(), ranking.begin() + static_cast<std::ptrdiff_t>(shown)}, fronts);
    if (shown < ranking.size()) text += fmt::format("... and {} slower ones (--all)\n", ranking.size() - shown);
    const auto is_shown = [&](std::size_t place) {
      const auto end = ranking.begin() + static_cast<std::ptrdiff_t>(shown);
      return std::find(ranking.begin(), end, place) != end;
    };
    const auto add_front = [&](const char* name, const std::vector<std::size_t>& front) {
      const bool are_all_shown = std::all_of(front.begin(), front.end(), is_shown);
      text += fmt::format("{} against throughput: {} point{}{}\n", name, front.size(), front.size() == 1 ? "" : "s",
                          are_all_shown ? "" : ", all of them:");
      if (!are_all_shown) text += points_text(table, front, fronts);
    };
    add_front("* on the front of devices", fronts.of_devices);
    if (!fronts.of_cost.empty()) add_front("+ on the front of cost", fronts.of_cost);
  }
  const std::vector<Crossing> crossings = table.crossings();
  if (!crossings.empty()) text += "\nwhere strategies cross, each at its best\n";
  for (const Crossing& crossing : crossings) text += crossing_text(crossing);
  return text + problems_text(table) + unused_text(table);
}

std::string sweep_csv(const SweepTable& table) {
  std::string text;
  for (const std::string& field : table.fields) text += csv_cell(field) + ",";
  text += "state,devices,throughput,unit,step_time_ns,median_step_time_ns";
  for (const StepPart& part : step_parts()) text += fmt::format(",{}_ns", part.name);
  text += ",limit,pareto";
  for (const MemoryPart& part : memory_parts()) text += fmt::format(",{}_bytes", part.name);
  text += ",memory_bytes,available_bytes";
  for (const RateFigure& figure : rate_figures()) text += fmt::format(",{}", figure.name);
  text += ",currency,estimated_cpu_s,estimated_memory_bytes,goodput,job_s,evaluation_ns,evaluation_share,problem\n";
  const std::vector<std::size_t> front = table.pareto_front();
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    const SweptPoint& point = table.points[i];
    for (const auto& [path, value] : point.values) text += csv_cell(value) + ",";
    text += fmt::format("{},{},{},{},{},{}", name_of(point.state), point.devices, point.throughput,
                        csv_cell(point.unit), point.step_time, point.median_step_time);
    for (const StepPart& part : step_parts()) {
      text += point.has_parts() ? fmt::format(",{}", point.per_step.*part.time) : ",";
    }
    const bool is_on_front = std::find(front.begin(), front.end(), i) != front.end();
    text += fmt::format(",{},{}", csv_cell(point.limit), is_on_front ? 1 : 0);
    const MemoryNeed memory = point.memory.value_or(MemoryNeed{});
    for (const MemoryPart& part : memory_parts()) text += fmt::format(",{}", memory.*part.bytes);
    text += fmt::format(",{},{}", memory.total(), memory.available);
    for (const RateFigure& figure : rate_figures()) text += fmt::format(",{}", point.rates.*figure.value);
    text += "," + csv_cell(point.currency);
    text += point.estimate ? fmt::format(",{},{}", point.estimate->cpu_s, point.estimate->memory_bytes) : ",,";
    text += point.course ? fmt::format(",{},{}", point.course->goodput, point.course->seconds) : ",,";
    text += point.evaluation ? fmt::format(",{},{}", point.evaluation->median, point.evaluation->share) : ",,";
    text += fmt::format(",{}\n", csv_cell(point.problem));
  }
  return text;
}

std::string sweep_plan_text(const SweepTable& table, bool all) {
  TextTable text;
  std::vector<std::string> head{""};
  for (const std::string& name : heads_of(table)) head.push_back(name);
  for (const char* name : {"CPU time", "memory"}) head.emplace_back(name);
  text.add(head);
  const ShownRows rows =
      all ? ShownRows{.count = table.points.size(), .more = ""} : shown_rows(table.points.size(), "--all");
  double cpu_s = 0, most_bytes = 0;
  for (std::size_t place = 0; place < table.points.size(); ++place) {
    const SweptPoint& point = table.points[place];
    if (point.estimate) {
      cpu_s += point.estimate->cpu_s;
      most_bytes = std::max(most_bytes, point.estimate->memory_bytes);
    }
    if (place >= rows.count) continue;
    std::vector<std::string> row{""};
    for (const auto& [path, value] : point.values) row.push_back(cell(value));
    row.push_back(point.estimate ? seconds_text(point.estimate->cpu_s) : "refused");
    row.push_back(point.estimate ? format_quantity(point.estimate->memory_bytes, Dimension::bytes) : "-");
    text.add(row);
  }
  std::string plan = counts_text(table) + "\n" + text.text() + rows.more;
  return plan + fmt::format("\nabout {} of CPU time in all, up to {} for a point (estimates)\n", seconds_text(cpu_s),
                            format_quantity(most_bytes, Dimension::bytes));
}

}  // namespace tandem
