#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/base/size_bands.h"
#include "reports/base/text_table.h"
#include "reports/validation/validation.h"

namespace tandem {
namespace {

// The points of one row of the table.
struct Tail {
  int points = 0;
  int beyond = 0;
  double least = 0, most = 0;  // of the errors beyond, with their signs

  void add(double error, double limit) {
    ++points;
    if (std::abs(error) <= limit) return;
    least = beyond == 0 ? error : std::min(least, error);
    most = beyond == 0 ? error : std::max(most, error);
    ++beyond;
  }
};

// By file, collective or strategy, and size or machines.
using TailKey = std::tuple<std::string, std::string, std::string>;
using Tails = std::map<TailKey, Tail>;

Tails tails_of(const Validation& validation, double limit) {
  Tails tails;
  for (const ValidationPoint& point : validation.points) {
    if (!point.apart.empty()) continue;
    const std::string size(kSizeBands[size_band_of(point.bytes)].name);
    tails[{point.file, point.collective, size}].add(point.error(), limit);
  }
  for (const TrainingPoint& point : validation.training) {
    if (!point.apart.empty()) continue;
    tails[{point.file, point.strategy, nodes_text(point.nodes)}].add(point.error(), limit);
  }
  return tails;
}

}  // namespace

std::string validation_tail_text(const Validation& validation, double limit) {
  const Tails tails = tails_of(validation, limit);
  std::vector<std::pair<TailKey, Tail>> rows(tails.begin(), tails.end());
  std::erase_if(rows, [](const auto& row) { return row.second.beyond == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.beyond > b.second.beyond; });
  int points = 0, beyond = 0;
  for (const auto& [key, tail] : tails) {
    points += tail.points;
    beyond += tail.beyond;
  }
  std::string text =
      fmt::format("protocol {}: {} of {} points are off by more than {:.4g} %; those apart do not count\n",
                  validation.protocol, beyond, points, limit * 100);
  if (rows.empty()) return text;
  TextTable table(3);
  table.add({"file", "of", "where", "points", "beyond", "least", "most"});
  table.add_rule();
  for (const auto& [key, tail] : rows) {
    const auto& [file, what, where] = key;
    table.add({file, what, where, fmt::to_string(tail.points), fmt::to_string(tail.beyond),
               fmt::format("{:+.1f}", tail.least * 100), fmt::format("{:+.1f}", tail.most * 100)});
  }
  return text + "\n" + table.text();
}

}  // namespace tandem
