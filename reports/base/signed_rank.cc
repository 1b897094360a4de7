#include "reports/base/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kMostDifferences = 62;  // 2^62 assignments of signs fit a 64-bit integer

// Returns for each sum how many of the 2^count assignments of signs give positive ranks that add up to it.
std::vector<std::uint64_t> counts_by_sum(int count) {
  TANDEM_REQUIRE(count >= 1 && count <= kMostDifferences, "a signed-rank test takes 1 to 62 differences");
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(count * (count + 1) / 2 + 1), 0);
  counts[0] = 1;
  for (int rank = 1; rank <= count; ++rank) {
    for (auto sum = static_cast<std::int64_t>(counts.size()) - 1; sum >= rank; --sum) {
      counts[static_cast<std::size_t>(sum)] += counts[static_cast<std::size_t>(sum - rank)];
    }
  }
  return counts;
}

std::vector<double> walsh_averages(const std::vector<double>& differences) {
  std::vector<double> averages;
  averages.reserve(differences.size() * (differences.size() + 1) / 2);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t j = i; j < differences.size(); ++j) averages.push_back((differences[i] + differences[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  return averages;
}

}  // namespace

double signed_rank_probability(int count, int sum) {
  const std::vector<std::uint64_t> counts = counts_by_sum(count);
  std::uint64_t at_most = 0;
  for (int i = 0; i <= sum && i < static_cast<int>(counts.size()); ++i) at_most += counts[static_cast<std::size_t>(i)];
  return std::ldexp(static_cast<double>(at_most), -count);
}

std::optional<int> signed_rank_critical_value(int count, double level) {
  const std::vector<std::uint64_t> counts = counts_by_sum(count);
  std::uint64_t at_most = 0;
  int largest = -1;
  for (const std::uint64_t assignments : counts) {
    at_most += assignments;
    if (std::ldexp(static_cast<double>(at_most), -count) > level) break;
    ++largest;
  }
  if (largest < 0) return std::nullopt;
  return largest;
}

std::optional<CentreInterval> centre_of(const std::vector<double>& differences, double level) {
  const auto beyond = signed_rank_critical_value(static_cast<int>(differences.size()), level);
  if (!beyond) return std::nullopt;
  const std::vector<double> averages = walsh_averages(differences);
  const std::size_t middle = averages.size() / 2;
  CentreInterval interval;
  interval.estimate = averages.size() % 2 == 1 ? averages[middle] : (averages[middle - 1] + averages[middle]) / 2;
  interval.lower = averages[static_cast<std::size_t>(*beyond)];
  interval.upper = averages[averages.size() - 1 - static_cast<std::size_t>(*beyond)];
  return interval;
}

double signed_rank_p_value(const std::vector<double>& differences) {
  std::vector<double> nonzero;
  std::copy_if(differences.begin(), differences.end(), std::back_inserter(nonzero), [](double d) { return d != 0; });
  if (nonzero.empty()) return 1;
  std::sort(nonzero.begin(), nonzero.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  double positive = 0, negative = 0;
  for (std::size_t first = 0; first < nonzero.size();) {
    std::size_t end = first;
    while (end < nonzero.size() && std::abs(nonzero[end]) == std::abs(nonzero[first])) ++end;
    const double rank = static_cast<double>(first + 1 + end) / 2;  // the mean of the ranks that are tied
    for (; first < end; ++first) (nonzero[first] > 0 ? positive : negative) += rank;
  }
  // Half a rank is rounded up, so that a tie never makes a result significant.
  const int smaller = static_cast<int>(std::ceil(std::min(positive, negative)));
  return std::min(1.0, 2 * signed_rank_probability(static_cast<int>(nonzero.size()), smaller));
}

std::vector<double> holm_adjusted(const std::vector<double>& p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(order.size() - i) * p_values[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace tandem
