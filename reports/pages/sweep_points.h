// The points of a sweep's document, for its page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/base/json_fields.h"
#include "reports/pages/plot.h"

namespace tandem::pages {

// A point of a sweep, as its page shows it.
struct PagePoint {
  std::vector<std::pair<std::string, std::string>> values;
  std::string state, problem, strategy, unit, limit;
  int devices = 0;
  double throughput = 0;
  double step_time = 0;
  double cost_per_million = 0;  // of its units; 0: unknown
  std::string currency;
  std::vector<double> parts;  // of step_parts(); none if they are not known

  bool is_done() const { return throughput > 0; }
  std::string values_text() const;  // "workers 4, node hgx-h100"
};
using Points = std::vector<PagePoint>;

PagePoint point_of(const JsonField& field);
// Collects values of a swept field in the order in which they occur, which is that of the sweep.
std::vector<std::string> values_of(const Points& points, std::size_t field);
// Returns the unit of throughput; "" if no point has a result.
std::string unit_of(const Points& points);

Axis devices_axis();
// Throughput and efficiency of the best points by number of devices: a curve for each strategy on each machine.
std::string scaling_section(const Points& points);

}  // namespace tandem::pages
