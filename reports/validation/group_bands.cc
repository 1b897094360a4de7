#include "reports/validation/group_bands.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "reports/base/statistics.h"

namespace tandem {
namespace {

constexpr std::size_t kFewSources = 4;  // fewer do not say how far apart sources are

bool is_of_servers(PredictionGroup group) {
  return group == PredictionGroup::parameter_server || group == PredictionGroup::central_storage;
}

std::set<std::string> sources_of(PredictionGroup group, const std::vector<SourcedError>& errors) {
  std::set<std::string> sources;
  for (const SourcedError& one : errors) {
    if (one.group == group) sources.insert(one.source);
  }
  return sources;
}

}  // namespace

std::vector<SourcedError> errors_for_bands(const std::vector<TrainingPoint>& points) {
  std::vector<SourcedError> errors;
  for (const TrainingPoint& point : points) {
    const auto group = prediction_group(point.compared_as, point.devices, point.nodes);
    if (!group || !(point.apart.empty() || *group == PredictionGroup::central_storage)) continue;
    errors.push_back({.group = *group, .source = point.source, .error = std::abs(point.error())});
  }
  return errors;
}

std::vector<double> errors_in(PredictionGroup group, const std::vector<SourcedError>& errors) {
  std::vector<double> mine;
  for (const SourcedError& one : errors) {
    if (one.group == group) mine.push_back(one.error);
  }
  return mine;
}

GroupErrors band_of(PredictionGroup group, const std::vector<SourcedError>& errors) {
  const std::vector<double> mine = errors_in(group, errors);
  const std::size_t sources = sources_of(group, errors).size();
  GroupErrors band{.group = group,
                   .rows = static_cast<int>(mine.size()),
                   .sources = static_cast<int>(sources),
                   .band = p95_of(mine)};
  if (sources >= kFewSources || is_of_servers(group)) return band;
  std::vector<double> all;
  for (const SourcedError& one : errors) {
    if (!is_of_servers(one.group)) all.push_back(one.error);
  }
  const double of_all = p95_of(all);
  band.is_of_all = of_all > band.band;
  band.band = std::max(band.band, of_all);
  return band;
}

std::optional<double> share_of_new_sources(PredictionGroup group, const std::vector<SourcedError>& errors) {
  std::ptrdiff_t rows = 0, within = 0;
  for (const std::string& source : sources_of(group, errors)) {
    std::vector<SourcedError> others;
    std::ranges::copy_if(errors, std::back_inserter(others),
                         [&](const SourcedError& one) { return one.source != source; });
    if (errors_in(group, others).empty()) continue;
    const double band = band_of(group, others).band;
    for (const SourcedError& one : errors) {
      if (one.group != group || one.source != source) continue;
      ++rows;
      if (one.error <= band) ++within;
    }
  }
  return rows == 0 ? std::nullopt : std::optional(static_cast<double>(within) / static_cast<double>(rows));
}

}  // namespace tandem
