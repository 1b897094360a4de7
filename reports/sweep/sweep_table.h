// Compares the points of a sweep: the best, the Pareto front, what limits each, and where strategies cross.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/run/memory_need.h"
#include "reports/run/report.h"

namespace tandem {

enum class PointState : std::uint8_t {
  done,
  does_not_fit,  // into the memory of the devices
  failed,        // not a valid scenario, or a run that ended with an error
  lost,          // the process that ran it was ended, or this machine is too small for it
  not_run,
};
const char* name_of(PointState state);  // "done", "does not fit", ...

// What running a point is expected to cost this machine.
struct PointEstimate {
  double cpu_s = 0;
  double memory_bytes = 0;
};

// What limits a run that did not record the parts of a step.
inline constexpr std::string_view kUnknownLimit = "unknown";

struct SweptPoint {
  std::vector<std::pair<std::string, std::string>> values;  // swept fields and their values
  PointState state = PointState::not_run;
  std::string problem{};  // of points that are not done
  std::string strategy{};
  int devices = 0;  // those that train
  std::string unit{};
  double throughput = 0;             // units/s; with a course, of the whole job: 0 if it ends before its last step
  Nanoseconds step_time = 0;         // the mean
  Nanoseconds median_step_time = 0;  // differs by more than StepTime::kUneven where there are long steps
  std::optional<LongSteps> long_steps{};
  PerStep per_step{};
  std::string limit{};                                       // limit_of(), or "memory"
  bool has_parts() const { return limit != kUnknownLimit; }  // whether `per_step` says anything
  std::optional<MemoryNeed> memory{};
  RunRates rates{};
  std::vector<ErrorInterval> expected_error{};  // of a prediction, by level; empty: not known
  std::string currency{};                       // of its costs; empty: its machines have no price
  std::optional<PointEstimate> estimate{};      // of points that have not run; empty: it is refused, or not known
  // Where a job loses workers. The range: see JobCourse::least_goodput; both ends are the goodput where nothing
  // is drawn.
  struct Course {
    double seconds = 0;  // of the whole job
    double goodput = 0, least_goodput = 0, greatest_goodput = 0;
    std::string ended{};  // why it ended before its last step; empty: it did all
  };
  std::optional<Course> course{};
  // Where a job evaluates: the median of one evaluation, and the share of the job's time that training waited.
  struct Evaluation {
    Nanoseconds median = 0;
    double share = 0;
  };
  std::optional<Evaluation> evaluation{};
  std::vector<std::string> unused{};  // notes about what the scenario says without an effect at this point
};

// Returns what a step waits for most: "compute", "communication" (exposed), "input" (exposed), "server" where a server
// is busier than the devices compute, "waiting" for other devices or the host.
std::string limit_of(const Report& report);

// Returns the point of a finished run. The caller fills in its values.
SweptPoint swept_point(const Report& report, int devices);

// The value of a field at which one strategy begins to be faster than another, at the best of all other fields.
struct Crossing {
  std::string field;         // "devices", or a swept one with numbers
  std::string below, above;  // the strategies that are faster below and above it
  double from = 0, to = 0;   // the last value at which `below` is faster, and the first at which `above` is
  double at = 0;             // between them, on lines through the logarithms
};

struct SweepTable {
  std::string scenario;
  std::string engine;
  std::vector<std::string> fields;
  std::vector<SweptPoint> points;  // in the order of the sweep

  int count(PointState state) const;
  // Returns the indices of the points that are done, the fastest first, and of equally fast ones those with fewer
  // devices first.
  std::vector<std::size_t> ranking() const;
  // Returns the points that chance does not tell from the best one: their goodput may reach the least of its; none
  // where points have no course.
  std::vector<std::size_t> not_told_from_best() const;
  // Returns the indices of the points for which no other point is faster with as many or fewer devices, by devices.
  std::vector<std::size_t> pareto_front() const;
  // Returns the currency of the points that are done, if all of them have a price in the same one; else "".
  std::string currency() const;
  // Returns the indices of the points for which no other point is faster at the same or a lower cost of a unit, by that
  // cost; none without a currency.
  std::vector<std::size_t> cost_front() const;
  std::vector<Crossing> crossings() const;
  // Returns the notes of the points that are done, each once and with the number of its points unless all have it.
  std::vector<std::string> notes() const;
};

// Returns a text for people: all points with `all`, otherwise the fastest of them and the front.
std::string sweep_text(const SweepTable& table, bool all = false);
// Returns the rows of these points, below a head: their values and figures.
std::string rows_text(const SweepTable& table, const std::vector<std::size_t>& places);
// Returns the values of a point in one line, "data 8, tensor 4".
std::string values_text(const SweepTable& table, const SweptPoint& point);
// Returns what most points without a result lack, each problem once.
std::string problems_text(const SweepTable& table);
// Returns a text for people before the sweep: the points that would run, with their estimates, and their sum.
std::string sweep_plan_text(const SweepTable& table, bool all = false);
// Returns a header, then a line for each point.
std::string sweep_csv(const SweepTable& table);

}  // namespace tandem
