#include "reports/validation/training_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/run/memory_need.h"

namespace tandem {
namespace {

constexpr double kNear = 0.10;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The errors of one group of rows.
class RowErrors {
 public:
  void add(const TrainingPoint& point) {
    errors_.push_back(std::abs(point.error()));
    if (std::abs(point.error()) > std::abs(worst_)) worst_ = point.error();
    if (point.linear > 0) linear_.push_back(std::abs(point.linear / point.measured - 1));
  }

  // After the cells that name the group.
  void add_cells(std::vector<std::string>& cells) const {
    const auto near = std::count_if(errors_.begin(), errors_.end(), [](double error) { return error <= kNear; });
    cells.push_back(fmt::to_string(errors_.size()));
    cells.push_back(short_percent(mean_of(errors_)));
    cells.push_back(short_percent(median_of(errors_)));
    cells.push_back(short_percent(p95_of(errors_)));
    cells.push_back(fmt::format("{:+.1f}", worst_ * 100));
    cells.push_back(fmt::format("{:.0f} %", 100.0 * static_cast<double>(near) / static_cast<double>(errors_.size())));
    cells.push_back(linear_.empty() ? "-" : short_percent(mean_of(linear_)));
  }

 private:
  std::vector<double> errors_, linear_;
  double worst_ = 0;  // with its sign
};

// By strategy, machines and file; an empty file means all files together.
using RowGroups = std::map<std::tuple<std::string, std::string, std::string>, RowErrors>;

// If some rows are reported apart, adds another group of all rows together.
void add_together(const std::vector<TrainingPoint>& points, RowGroups& groups) {
  std::map<std::pair<std::string, std::string>, std::set<bool>> kinds;
  for (const TrainingPoint& point : points)
    kinds[{point.strategy, nodes_text(point.nodes)}].insert(point.apart.empty());
  for (const TrainingPoint& point : points) {
    const std::string nodes = nodes_text(point.nodes);
    if (kinds[{point.strategy, nodes}].size() == 2)
      groups[{point.strategy, nodes + ", with those apart", ""}].add(point);
  }
}

std::string summary_text(const std::vector<TrainingPoint>& points) {
  RowGroups groups;
  for (const TrainingPoint& point : points) {
    const std::string nodes = nodes_text(point.nodes);
    const std::string machines = point.apart.empty() ? nodes : fmt::format("apart: {}, {}", point.apart, nodes);
    groups[{point.strategy, machines, ""}].add(point);
    groups[{point.strategy, machines, point.file}].add(point);
  }
  add_together(points, groups);
  TextTable table(3);
  table.add({"strategy", "machines", "file", "rows", "mean", "median", "p95", "worst", "within 10 %", "linear: mean"});
  table.add_rule();
  for (const auto& [key, errors] : groups) {
    const auto& [strategy, machines, file] = key;
    std::vector<std::string> cells = {"", "", file};
    if (file.empty()) cells = {strategy, machines, "all"};
    errors.add_cells(cells);
    table.add(std::move(cells));
  }
  return table.text() + "\n";
}

constexpr double kNearPublishedPeak = 0.05;

std::string rows_text(const std::vector<TrainingPoint>& points) {
  const bool has_names = std::ranges::any_of(points, [](const TrainingPoint& point) { return !point.run.empty(); });
  TextTable table(has_names ? 4 : 3);
  const auto add = [&](std::vector<std::string> cells, const std::string& run) {
    if (has_names) cells.insert(cells.begin() + 3, run);
    table.add(std::move(cells));
  };
  add({"model", "strategy", "file", "devices", "measured", "predicted", "error", "linear"}, "run");
  table.add_rule();
  for (const TrainingPoint& point : points) {
    add({point.model, point.strategy, point.file, fmt::to_string(point.devices), rate_text(point.measured, point.unit),
         rate_text(point.predicted, point.unit), error_text(point.error()),
         point.linear > 0 ? error_text(point.linear / point.measured - 1) : "-"},
        point.run);
  }
  return table.text() + "\n";
}

}  // namespace

std::string training_errors_text(const std::vector<TrainingPoint>& points, bool by_row) {
  if (points.empty()) return "";
  return (by_row ? rows_text(points) : "") + summary_text(points);
}

std::string peak_errors_text(const std::vector<TrainingPoint>& points, bool by_row) {
  std::map<std::pair<std::string, bool>, std::vector<double>> files;
  TextTable rows(3);
  rows.add({"model", "strategy", "file", "devices", "peak", "predicted", "error"});
  rows.add_rule();
  for (const TrainingPoint& point : points) {
    if (!point.peak) continue;
    files[{point.file, point.peak->is_reserved}].push_back(point.peak_error());
    rows.add({point.model, point.strategy, point.file, fmt::to_string(point.devices),
              memory_size_text(point.peak->bytes), memory_size_text(point.predicted_peak),
              error_text(point.peak_error())});
  }
  if (files.empty()) return "";
  TextTable table(2);
  table.add({"memory of a device", "published peak", "rows", "median", "worst", "within 5 %"});
  table.add_rule();
  for (const auto& [key, errors] : files) {
    std::vector<double> absolute(errors.size());
    std::ranges::transform(errors, absolute.begin(), [](double error) { return std::abs(error); });
    const auto near = std::ranges::count_if(absolute, [](double error) { return error <= kNearPublishedPeak; });
    const double worst = *std::ranges::max_element(errors, {}, [](double error) { return std::abs(error); });
    table.add({key.first, key.second ? "reserved" : "allocated", fmt::to_string(errors.size()),
               short_percent(median_of(absolute)), fmt::format("{:+.1f}", worst * 100),
               fmt::format("{:.0f} %", 100.0 * static_cast<double>(near) / static_cast<double>(errors.size()))});
  }
  return (by_row ? rows.text() + "\n" : "") + table.text() + "\n";
}

}  // namespace tandem
