#include "scenarios/plan/usual_comparison.h"

#include <algorithm>

#include "scenarios/sweep/point_runner.h"
#include "scenarios/sweep/process_pool.h"

namespace tandem {
namespace {

bool is_within_memory(const SweptPoint& point) {
  return point.state == PointState::done && (!point.memory || point.memory->is_within());
}

// A run may need slightly more memory than there is, as no point of the table does.
SweptPoint within_memory(SweptPoint point) {
  if (point.state != PointState::done || is_within_memory(point)) return point;
  point.state = PointState::does_not_fit;
  point.problem = memory_text(*point.memory);
  return point;
}

}  // namespace

void UsualComparison::run(PlanTable& table) {
  run_variants({{}}, 0, [&table](std::size_t, SweptPoint point) { table.usual = std::move(point); });
  const std::vector<std::size_t> ranks = table.ranking();
  if (is_within_memory(table.usual) && !ranks.empty()) change_by_hand(table, ranks.front());
}

// Changes the scenario as it is into the best one, field by field, and those together that mean nothing alone.
void UsualComparison::change_by_hand(PlanTable& table, std::size_t best) {
  const std::vector<ChangedFields> single = differences_of(space_, points_[best]);
  ChangedFields together;
  const auto take = [&](const ChangedFields& fields, SweptPoint point) {
    if (table.value(point) == table.value(table.usual)) return;  // it was so already
    if (fields.size() == 1 && point.state == PointState::failed) return together.push_back(fields.front());
    table.by_hand.push_back(hand_change(table, best, fields, within_memory(std::move(point))));
  };
  run_variants(single, best, [&](std::size_t i, SweptPoint point) { take(single[i], std::move(point)); });
  std::ranges::sort(together);
  if (together.size() < 2 || together.size() == single.size()) return;
  run_variants({together}, best, [&](std::size_t, SweptPoint point) { take(together, std::move(point)); });
}

HandChange UsualComparison::hand_change(const PlanTable& table, std::size_t best, const ChangedFields& fields,
                                        SweptPoint point) const {
  HandChange change{.fields = {}, .point = std::move(point)};
  for (const std::size_t field : fields) {
    const auto& [name, value] = table.sweep.points[best].values[field];
    change.fields.push_back({.field = name, .from = value_as_it_is(space_, field), .to = value});
  }
  return change;
}

void UsualComparison::run_variants(const std::vector<ChangedFields>& variants, std::size_t place, const Take& take) {
  std::vector<int> jobs;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (store_.variant(values_of(variants[i], place), place) == nullptr) jobs.push_back(static_cast<int>(i));
  }
  if (!jobs.empty()) simulate(variants, jobs, place);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const SweptPoint* known = store_.variant(values_of(variants[i], place), place);
    if (known == nullptr) continue;  // its process was lost
    SweptPoint point = *known;
    point.values.clear();
    take(i, std::move(point));
  }
}

void UsualComparison::simulate(const std::vector<ChangedFields>& variants, const std::vector<int>& jobs,
                               std::size_t place) {
  const int processes = std::min(processes_, static_cast<int>(jobs.size()));
  PointRunner runner(space_, points_, store_.files(), topology_, 1.0 / processes);
  const auto make = [&](const ChangedFields& fields, SharedParts& parts) {
    return fields.empty() ? space_.base() : space_.variant(points_[place], fields, parts);
  };
  ProcessPool pool(processes, [&](int job) {
    return runner.line_of_other(
        [&](SharedParts& parts) { return make(variants[static_cast<std::size_t>(job)], parts); });
  });
  const auto take = [&](int job, const std::string& line) {
    const ChangedFields& fields = variants[static_cast<std::size_t>(job)];
    store_.add_variant(values_of(fields, place), place, point_of_line(line, "a result", 0).point);
  };
  pool.run(jobs, {.done = take, .lost = [](int, const std::string&) {}, .tick = tick_});
}

SweepSpace::Values UsualComparison::values_of(const ChangedFields& fields, std::size_t place) const {
  const SweepSpace::Values all = space_.values(points_[place]);
  SweepSpace::Values values;
  for (const std::size_t field : fields) values.push_back(all[field]);
  return values;
}

}  // namespace tandem
