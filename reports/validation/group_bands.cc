#include "reports/validation/group_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "reports/base/size_bands.h"
#include "reports/base/statistics.h"
#include "reports/base/text_table.h"

namespace tandem {
namespace {

constexpr double kFewSites = 5;  // fewer do not say how far apart sites are
constexpr std::array kLevels = {kUsualLevel, kWideLevel};

using Rows = std::vector<PredictedRow>;

// Which groups may be taken together: none have the class of a group that has none.
enum class Together : std::uint8_t { nothing, training, collectives };

Together class_of(PredictionGroup group) {
  switch (group) {
    case PredictionGroup::parameter_server:
    case PredictionGroup::central_storage:
    case PredictionGroup::device_memory:
    case PredictionGroup::collectives_pcie:
    case PredictionGroup::collectives_other_networks:
      return Together::nothing;
    case PredictionGroup::collectives_nvlink:
    case PredictionGroup::collectives_rdma:
      return Together::collectives;
    default:
      return Together::training;
  }
}

Rows rows_together_with(const PredictionRows& of, const Rows& rows) {
  Rows together;
  std::ranges::copy_if(rows, std::back_inserter(together), [&](const PredictedRow& row) {
    return class_of(row.of.group) == class_of(of.group) && row.of.sizes == of.sizes;
  });
  return together;
}

std::size_t sites_of(const Rows& rows) {
  std::set<std::string> sites;
  for (const PredictedRow& row : rows) sites.insert(row.site);
  return sites.size();
}

// Values, each with a weight; sorted.
class Weighted {
 public:
  void add(double value, double weight) { values_.emplace_back(value, weight); }
  void sort() { std::ranges::sort(values_); }

  // Returns the least value that at least `share` of the weight does not exceed.
  double quantile(double share) const {
    double sum = 0;
    for (const auto& [value, weight] : values_) sum += weight;
    double below = 0;
    for (const auto& [value, weight] : values_) {
      below += weight;
      if (below >= share * sum * (1 - kRounding)) return value;
    }
    return values_.back().first;
  }

 private:
  static constexpr double kRounding = 1e-12;
  std::vector<std::pair<double, double>> values_;
};

// The ratios of rows by weight, and the number of clusters that they are of.
class Spread {
 public:
  explicit Spread(const Rows& rows) : sites_(static_cast<double>(sites_of(rows))) {
    std::map<std::pair<std::string, std::string>, std::size_t> clusters;
    for (const PredictedRow& row : rows) ++clusters[{row.site, row.family}];
    clusters_ = static_cast<double>(clusters.size());
    for (const PredictedRow& row : rows)
      ratios_.add(row.ratio, 1 / std::sqrt(static_cast<double>(clusters[{row.site, row.family}])));
    ratios_.sort();
  }

  bool has_few_sites() const { return sites_ < kFewSites; }
  ErrorInterval interval(double level) const {
    const double share = std::min(needed(level), 1.0);
    return {
        .level = level, .low = ratios_.quantile((1 - share) / 2) - 1, .high = ratios_.quantile((1 + share) / 2) - 1};
  }
  // Returns the interval of the level or, where the sites or clusters are too few for it, the range of the rows and the
  // level that it has: the share of new clusters that is in it.
  ErrorInterval interval_or_range(double level) const {
    if (!has_few_sites() && needed(level) <= 1) return interval(level);
    const double count = has_few_sites() ? sites_ : clusters_;
    ErrorInterval range = interval(1);
    range.level = std::min(level, count / (count + 1));
    return range;
  }

 private:
  double needed(double level) const { return level * (clusters_ + 1) / clusters_; }

  double sites_ = 0, clusters_ = 0;
  Weighted ratios_;
};

// Whether few sites have rows of a group, and others of its class.
bool is_widened(const PredictionRows& of, const Rows& mine, const Rows& rows) {
  return class_of(of.group) != Together::nothing && Spread(mine).has_few_sites() &&
         rows_together_with(of, rows).size() > mine.size();
}

// With the level of the first.
ErrorInterval hull(const ErrorInterval& a, const ErrorInterval& b) {
  return {.level = a.level, .low = std::min(a.low, b.low), .high = std::max(a.high, b.high)};
}

// Returns the interval of a level, or of a lower one if nothing says more.
ErrorInterval interval_of(const PredictionRows& of, const Rows& mine, double level, const Rows& rows) {
  const Spread spread(mine);
  if (!is_widened(of, mine, rows)) return spread.interval_or_range(level);
  return hull(Spread(rows_together_with(of, rows)).interval_or_range(level), spread.interval(level));
}

// Whether a row that is reported apart is what its group is about.
bool counts_apart(const ValidationPoint& point) {
  return (point.group == PredictionGroup::collectives_other_networks && point.apart.starts_with("network")) ||
         (point.group == PredictionGroup::collectives_pcie && point.apart.find("P2P") != std::string::npos);
}

// An interval in the column of a level.
std::string cell_of(const ErrorInterval& interval, double level) {
  const std::string text = interval_text(interval);
  return interval.level == level ? text : fmt::format("{}: {}", level_text(interval.level), text);
}

}  // namespace

std::vector<PredictedRow> rows_for_bands(const Validation& validation) {
  Rows rows;
  for (const TrainingPoint& point : validation.training) {
    if (point.peak) {
      rows.push_back({.of = {PredictionGroup::device_memory, {}},
                      .site = point.source,
                      .family = point.family,
                      .ratio = 1 / (1 + point.peak_error()),
                      .error = point.peak_error()});
    }
    const auto group = prediction_group(point.compared_as, point.devices, point.nodes);
    if (!group || !(point.apart.empty() || *group == PredictionGroup::central_storage)) continue;
    rows.push_back({.of = {*group, {}},
                    .site = point.source,
                    .family = point.family,
                    .ratio = point.predicted / point.measured,  // of times, where the figures are throughputs
                    .error = point.error()});
  }
  for (const ValidationPoint& point : validation.points) {
    if (!point.apart.empty() && !counts_apart(point)) continue;
    rows.push_back({.of = {point.group, size_band_of(point.bytes)},
                    .site = point.site,
                    .family = point.family,
                    .ratio = point.measured_us / point.predicted_us,
                    .error = point.error()});
  }
  return rows;
}

std::vector<PredictedRow> rows_of(const PredictionRows& of, const std::vector<PredictedRow>& rows) {
  Rows mine;
  std::ranges::copy_if(rows, std::back_inserter(mine), [&](const PredictedRow& row) { return row.of == of; });
  return mine;
}

GroupErrors band_of(const PredictionRows& of, const std::vector<PredictedRow>& rows) {
  const Rows mine = rows_of(of, rows);
  GroupErrors errors{.of = of,
                     .rows = static_cast<int>(mine.size()),
                     .sites = static_cast<int>(sites_of(mine)),
                     .is_widened = is_widened(of, mine, rows)};
  for (const double level : kLevels) {
    const ErrorInterval interval = interval_of(of, mine, level, rows);
    if (errors.intervals.empty() || errors.intervals.back().level < interval.level)
      errors.intervals.push_back(interval);
  }
  return errors;
}

std::optional<double> share_of_new_sites(const PredictionRows& of, std::size_t interval,
                                         const std::vector<PredictedRow>& rows) {
  const Rows mine = rows_of(of, rows);
  std::set<std::string> sites;
  for (const PredictedRow& row : mine) sites.insert(row.site);
  std::size_t judged = 0, within = 0;
  for (const std::string& site : sites) {
    Rows others;
    std::ranges::copy_if(rows, std::back_inserter(others), [&](const PredictedRow& row) { return row.site != site; });
    if (rows_of(of, others).empty()) continue;
    const std::vector<ErrorInterval> intervals = band_of(of, others).intervals;
    if (interval >= intervals.size()) continue;
    for (const PredictedRow& row : mine) {
      if (row.site != site) continue;
      ++judged;
      if (intervals[interval].contains(row.ratio - 1)) ++within;
    }
  }
  return judged == 0 ? std::nullopt : std::optional(static_cast<double>(within) / static_cast<double>(judged));
}

std::vector<GroupErrors> group_errors(const Validation& validation, FigureBasis figures) {
  const Rows rows = rows_for_bands(validation);
  std::vector<GroupErrors> all;
  for (const PredictionRows& of : all_prediction_rows()) {
    if (rows_of(of, rows).empty()) continue;
    all.push_back(band_of(of, rows));
    all.back().figures = figures;
  }
  return all;
}

std::string group_bands_text(const Validation& validation) {
  const Rows rows = rows_for_bands(validation);
  if (rows.empty()) return "";
  TextTable table(1);
  table.add({"predictions of", "rows", "sites", "median", "4 of 5", "new sites", "19 of 20", "new sites"});
  table.add_rule();
  for (const PredictionRows& of : all_prediction_rows()) {
    const Rows mine = rows_of(of, rows);
    if (mine.empty()) continue;
    std::vector<double> errors(mine.size());
    std::ranges::transform(mine, errors.begin(), [](const PredictedRow& row) { return std::abs(row.error); });
    const GroupErrors band = band_of(of, rows);
    std::vector<std::string> cells = {name_of(of), fmt::to_string(mine.size()), fmt::to_string(band.sites),
                                      short_percent(median_of(errors))};
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      const auto share = share_of_new_sites(of, i, rows);
      cells.push_back(i < band.intervals.size() ? cell_of(band.intervals[i], kLevels[i]) : "-");
      cells.push_back(share ? fmt::format("{:.0f} %", *share * 100) : "-");
    }
    table.add(std::move(cells));
  }
  return table.text() + "\n";
}

}  // namespace tandem
