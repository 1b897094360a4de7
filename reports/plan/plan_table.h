// The search for the best point of a sweep: what is known of each point, which ones are best, and how much better any
// other one could be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/sweep/sweep_table.h"

namespace tandem {

// What a plan makes least of, for each unit that is trained.
enum class PlanGoal : std::uint8_t { time, cost, energy };
std::string_view name_of(PlanGoal goal);  // "time", "cost", "energy"

// How far quick simulations are from those of `tandem run`, at most: 0.6 % in trials (docs/sweep.md).
inline constexpr double kQuickError = 0.01;

// A point of a sweep, as far as the search has looked at it.
struct PlannedPoint {
  double least_step_s = 0;  // no step of it takes less; 0: nothing is known
  double units = 0;         // of a step
  double price_per_s = 0;   // of its machines; 0: unknown
  double power_w = 0;       // of its machines; 0: unknown
  bool is_whole = false;    // its times are those of `tandem run`; false: of a quick simulation, or it has none
};

// The scenario as it is, but with some values of the best point.
struct HandChange {
  struct Field {
    std::string field, from, to;  // from: "-" where the scenario says nothing
  };
  std::vector<Field> fields{};
  SweptPoint point{};  // without values
};

// What a plan of the same space finds with a change of the machines or of the scenario.
struct OtherPlan {
  std::string change;         // "1 GB more memory of each GPU"
  std::string problem{};      // why nothing was found; empty: `best` is known
  SweptPoint best{};          // with its values
  double value = 0;           // of the best one, as PlanTable::value()
  double gap = 0;             // as PlanTable::gap()
  bool is_same_point = true;  // as without the change
};

struct PlanTable {
  SweepTable sweep;
  std::vector<PlannedPoint> planned{};  // of the same points
  PlanGoal goal = PlanGoal::time;
  std::size_t wanted = 1;  // how many points are to be the best ones for certain
  // The scenario as it is, without the sweep's values; state not_run where it was not simulated.
  SweptPoint usual{};
  // What differs between it and the best point, one difference at a time. Those that mean nothing for themselves, such
  // as the sizes of a mesh, are one.
  std::vector<HandChange> by_hand{};
  std::vector<OtherPlan> others{};
  std::string stopped{};  // why the search ended before all was certain; empty: it did not

  // What the goal makes least of: seconds, money or joules for a unit. Infinite for points that have not run.
  double value(std::size_t place) const;
  double value(const SweptPoint& point) const;
  std::vector<double> values() const;  // of the points that are done
  // No run of this point has a smaller one. Infinite for those that cannot run.
  double least(std::size_t place) const;
  // Returns the points that are done, the best first.
  std::vector<std::size_t> ranking() const;
  // Returns the smallest value that a point may have.
  double least_of_all() const;
  // Returns by how much the best point is above the smallest possible value, as a share of the latter: 0 if no point
  // can be better. Infinite without a best point, or where nothing is known of another one.
  double gap() const;
  // Returns the points that were simulated, and those that never were because others are better for certain.
  std::size_t simulated() const;
  std::size_t ruled_out() const;
  // Returns the changes by hand that are better than the scenario as it is, the best first.
  std::vector<const HandChange*> first_changes() const;
};

// Returns a text for people.
std::string plan_text(const PlanTable& table);

}  // namespace tandem
