// The points of a sweep beside each other: the best, the Pareto front, what limits each, and where strategies cross.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/memory_need.h"
#include "reports/report.h"

namespace tandem {

enum class PointState : std::uint8_t {
  done,
  does_not_fit,  // the memory of the devices
  failed,        // no scenario, or a run that ended with an error
  lost,          // the process that ran it was ended
  not_run,
};
const char* name_of(PointState state);  // "done", "does not fit", ...

struct SweptPoint {
  std::vector<std::pair<std::string, std::string>> values;  // swept fields and their values
  PointState state = PointState::not_run;
  std::string problem{};  // of points that are not done
  std::string strategy{};
  int devices = 0;  // that train
  std::string unit{};
  double throughput = 0;  // units/s
  Nanoseconds step_time = 0;
  PerStep per_step{};
  std::string limit{};  // limit_of(), or "memory"
  std::optional<MemoryNeed> memory{};
};

// What a step waits for most: "compute", "communication" (exposed), "input" (exposed), "server" where one is busier
// than the devices compute, "waiting" for other devices or the host.
std::string limit_of(const Report& report);

// The point of a finished run. The caller fills in its values.
SweptPoint swept_point(const Report& report, int devices);

// Where one strategy begins to be faster than another, at the best of all other fields.
struct Crossing {
  std::string field;         // "devices", or a swept one with numbers
  std::string below, above;  // the strategies that are faster there
  double from = 0, to = 0;   // the last value at which `below` is faster, and the first at which `above` is
  double at = 0;             // between them, on lines through the logarithms
};

struct SweepTable {
  std::string scenario;
  std::string engine;
  std::vector<std::string> fields;
  std::vector<SweptPoint> points;  // in the order of the sweep

  int count(PointState state) const;
  // Places in `points` of those done: by throughput, the fastest first; of equal ones that with fewer devices.
  std::vector<std::size_t> ranking() const;
  // The places of those that no other one beats: none has at most as many devices and is faster. By devices.
  std::vector<std::size_t> pareto_front() const;
  std::vector<Crossing> crossings() const;
};

// For people. All points with `all`, otherwise the fastest of them and the front.
std::string sweep_text(const SweepTable& table, bool all = false);
// A head, then a line for each point.
std::string sweep_csv(const SweepTable& table);

}  // namespace tandem
