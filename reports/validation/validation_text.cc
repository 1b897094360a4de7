#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "reports/base/size_bands.h"
#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/validation/group_bands.h"
#include "reports/validation/training_errors.h"
#include "reports/validation/validation.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

struct Errors {
  std::vector<double> absolute;
  double worst = 0;  // with its sign

  void add(double error) {
    absolute.push_back(std::abs(error));
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
};

// Tables of the same machine, collective and size show how far repeated measurements are apart: the medians of |a / b -
// 1| over all ordered pairs.
using SpreadKey = std::tuple<std::string, std::string, std::string, int, std::int64_t>;

std::map<SpreadKey, std::vector<double>> repeated_times(const std::vector<ValidationPoint>& points) {
  std::map<SpreadKey, std::vector<double>> times;
  for (const ValidationPoint& point : points) {
    times[{point.family + point.apart, point.collective, point.dtype, point.devices, point.bytes}].push_back(
        point.measured_us);
  }
  return times;
}

void add_spreads(const std::vector<double>& times, std::vector<double>& spreads) {
  for (std::size_t a = 0; a < times.size(); ++a) {
    for (std::size_t b = 0; b < times.size(); ++b) {
      if (a != b) spreads.push_back(std::abs(times[a] / times[b] - 1));
    }
  }
}

std::string spread_text(const std::vector<double>& spreads) {
  if (spreads.empty()) return "-";
  return fmt::format("{} / {}", short_percent(median_of(spreads)), short_percent(p95_of(spreads)));
}

// One table of errors: a row for each group and band.
class ErrorTable {
 public:
  explicit ErrorTable(std::string heading) : heading_(std::move(heading)) {}

  void add(const std::string& group, const std::string& collective, std::size_t band, double error) {
    rows_[{group, collective, band}].add(error);
  }
  void add_spread(const std::string& group, const std::string& collective, std::size_t band,
                  const std::vector<double>& times) {
    add_spreads(times, spreads_[{group, collective, band}]);
  }

  std::string text() const {
    if (rows_.empty()) return "";
    TextTable table(3);
    table.add({heading_, "collective", "size", "points", "median", "p95", "worst", "repeated"});
    table.add_rule();
    std::pair<std::string, std::string> last;
    for (const auto& [key, errors] : rows_) {
      const auto& [group, collective, band] = key;
      const bool is_new = last != std::pair(group, collective);
      const auto spreads = spreads_.find(key);
      table.add({group == last.first ? "" : group, is_new ? collective : "", std::string(kSizeBands[band].name),
                 fmt::to_string(errors.absolute.size()), short_percent(median_of(errors.absolute)),
                 short_percent(p95_of(errors.absolute)), fmt::format("{:+.1f}", errors.worst * 100),
                 spread_text(spreads == spreads_.end() ? std::vector<double>() : spreads->second)});
      last = {group, collective};
    }
    return table.text() + "\n";
  }

 private:
  using Key = std::tuple<std::string, std::string, std::size_t>;
  std::string heading_;
  std::map<Key, Errors> rows_;
  std::map<Key, std::vector<double>> spreads_;
};

std::string group_of(const ValidationPoint& point) {
  if (!point.apart.empty()) return "apart: " + point.apart;
  return nodes_text(point.nodes);
}

// Names collectives as the summary's goals do, which treat some of them together.
std::string summary_collective(const ValidationPoint& point) {
  const bool is_common =
      point.collective == "all_reduce" || point.collective == "all_gather" || point.collective == "reduce_scatter";
  return is_common ? "all_reduce, all_gather, reduce_scatter" : point.collective;
}

std::string collectives_text(const Validation& validation, bool by_family) {
  ErrorTable summary("machines"), families("machine");
  for (const ValidationPoint& point : validation.points) {
    const std::size_t band = size_band_of(point.bytes);
    summary.add(group_of(point), summary_collective(point), band, point.error());
    families.add(point.apart.empty() ? point.family : point.family + " (apart)", point.collective, band, point.error());
  }
  // A size measured in several files counts once for each pair.
  std::map<SpreadKey, const ValidationPoint*> first;
  for (const ValidationPoint& point : validation.points) {
    first.try_emplace({point.family + point.apart, point.collective, point.dtype, point.devices, point.bytes}, &point);
  }
  for (const auto& [key, times] : repeated_times(validation.points)) {
    if (times.size() < 2) continue;
    const ValidationPoint& point = *first.at(key);
    const std::size_t band = size_band_of(point.bytes);
    summary.add_spread(group_of(point), summary_collective(point), band, times);
    families.add_spread(point.apart.empty() ? point.family : point.family + " (apart)", point.collective, band, times);
  }
  return summary.text() + (by_family ? families.text() : "");
}

std::string files_text(const std::string& title, const std::vector<LeftOut>& files) {
  if (files.empty()) return "";
  std::string text = fmt::format("{}: {}\n", title, files.size());
  for (const LeftOut& one : files) text += fmt::format("  {}: {}\n", shown(one.file), shown(one.why));
  return text;
}

}  // namespace

std::string validation_text(const Validation& validation, bool by_family) {
  std::string text;
  if (validation.nothing.empty()) {
    text = fmt::format(
               "protocol {}: absolute errors in percent; repeated: how far measurements of the same are "
               "apart, median / p95\n\n",
               validation.protocol) +
           collectives_text(validation, by_family) + training_errors_text(validation.training, by_family) +
           group_bands_text(validation) + peak_errors_text(validation.training, by_family);
  } else {
    text = fmt::format("protocol {}: nothing to predict, because {}\n", validation.protocol, validation.nothing);
  }
  for (const std::string& line : validation.contradictions) text += wrapped_list("contradiction: ", words_of(line), "");
  return text + files_text("notes", validation.notes) + files_text("left out", validation.left_out);
}

}  // namespace tandem
