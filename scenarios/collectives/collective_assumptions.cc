#include "scenarios/collectives/collective_assumptions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "engine/engine_info.h"

namespace tandem {
namespace {

constexpr std::size_t kShownOfSweep = 3;
constexpr double kLeastChange = 0.001;
constexpr int kMostCheapDevices = 1024;  // calls of them take about 0.1 ms each

// Returns the rows of the least size, of the middle one, and of the largest.
std::vector<CollectiveRow> some_rows(const std::vector<CollectiveRow>& rows) {
  if (rows.size() <= 3) return rows;
  return {rows.front(), rows[rows.size() / 2], rows.back()};
}

double effect_on_times(const CollectiveAssumption& one) {
  double most = 0;
  for (const CollectiveAssumption::Times& times : one.times) most = std::max(most, times.effect());
  return most;
}

}  // namespace

bool has_cheap_assumptions(const CollectiveJob& job) {
  const bool is_fluid = job.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid;
  return engine_info(job.engine).needs_topology && is_fluid && job.workers * job.devices <= kMostCheapDevices;
}

std::vector<CollectiveAssumption> assumptions_of(const CollectiveJob& job, const CollectiveSweep& sweep,
                                                 const CollectiveResult& result, FigureRanges ranges, bool all_sizes) {
  if (!result.deterministic || !job.topology) return {};
  const std::vector<CollectiveRow> rows = all_sizes ? result.table.rows : some_rows(result.table.rows);
  CollectiveSweep part = sweep;
  part.sizes.clear();
  for (const CollectiveRow& row : rows) part.sizes.push_back(row.bytes);
  const auto times_with = [&](const AssumedFigure& figure, double value) {
    CollectiveJob other = job;
    other.topology = with_figure(*job.topology, figure, value);
    std::map<std::int64_t, double> times_us;
    for (const CollectiveRow& row : run_collective(other, part).table.rows) times_us[row.bytes] = row.time_us();
    return times_us;
  };
  std::vector<CollectiveAssumption> all;
  for (const AssumedFigure& figure : assumed_figures(*job.topology, result.consulted, ranges)) {
    CollectiveAssumption one{.figure = figure.what,
                             .value = figure.value,
                             .source = figure.figure.source,
                             .from = figure.from,
                             .to = figure.to,
                             .times = {}};
    const auto least = times_with(figure, figure.least), most = times_with(figure, figure.most);
    for (const CollectiveRow& row : rows)
      one.times.push_back({row.bytes, row.time_us(), least.at(row.bytes), most.at(row.bytes)});
    if (effect_on_times(one) > kLeastChange) all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, std::greater(), effect_on_times);
  all.resize(std::min(all.size(), kShownOfSweep));
  return all;
}

}  // namespace tandem
