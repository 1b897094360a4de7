#include "reports/base/change_points.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "reports/base/statistics.h"

namespace tandem {
namespace {

// Returns the mean distance of pairs within a part, from the sum of the distances.
double mean_within(double sum, int values) {
  return values < 2 ? 0 : 2 * sum / (static_cast<double>(values) * (values - 1));
}

double divergence(double between, double within_first, double within_second, int first, int second) {
  const double n = first, m = second;
  return n * m / (n + m) *
         (2 * between / (n * m) - mean_within(within_first, first) - mean_within(within_second, second));
}

// A part of the series between change points, and the place where it is best divided.
struct Part {
  int begin = 0;
  int end = 0;
  SeriesDivision division{};
};

class Divisive {
 public:
  Divisive(std::span<const double> values, const ChangePointOptions& options)
      : values_(values), options_(options), random_(options.seed) {
    parts_.push_back(part(0, static_cast<int>(values.size())));
  }

  // Divides the part in which q is largest. Returns false if that is not significant.
  bool divide() {
    const auto best = std::max_element(parts_.begin(), parts_.end(),
                                       [](const Part& a, const Part& b) { return a.division.q < b.division.q; });
    if (best->division.q <= 0) return false;
    const double p = p_value(best->division.q);
    if (p > options_.level) return false;
    const Part whole = *best;
    const int middle = whole.begin + whole.division.first;
    *best = part(whole.begin, middle);
    parts_.insert(best + 1, part(middle, whole.end));
    found_.push_back({.index = middle, .change = 0, .p_value = p});
    return true;
  }

  // Removes change points that are smaller than the margin, the smallest first, and each time joins the parts beside
  // it.
  std::vector<ChangePoint> result() {
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    while (true) {
      measure();
      const auto least = std::min_element(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
        return std::abs(std::log1p(a.change)) < std::abs(std::log1p(b.change));
      });
      if (least == found_.end() || std::abs(std::log1p(least->change)) >= std::log1p(options_.margin)) return found_;
      found_.erase(least);
    }
  }

 private:
  Part part(int begin, int end) const {
    const auto length = static_cast<std::size_t>(end - begin);
    return {begin, end, best_division(values_.subspan(static_cast<std::size_t>(begin), length), options_.shortest)};
  }

  // Returns the share of permutations with a q at least as large, counting the series itself as one of them. Stops as
  // soon as the p-value is known to be above the level.
  double p_value(double q) {
    const double most = options_.level * (options_.permutations + 1);
    int as_large = 1;
    for (int i = 0; i < options_.permutations && as_large <= most; ++i) {
      double largest = 0;
      for (const Part& part : parts_) largest = std::max(largest, permuted_q(part));
      if (largest >= q) ++as_large;
    }
    return as_large <= most ? as_large / (options_.permutations + 1.0) : 1;
  }

  double permuted_q(const Part& part) {
    std::vector<double> values(values_.begin() + part.begin, values_.begin() + part.end);
    // std::shuffle draws differently in every standard library.
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random_() % i]);
    return best_division(values, options_.shortest).q;
  }

  double centre(int begin, int end) const {
    return median_of(std::vector<double>(values_.begin() + begin, values_.begin() + end));
  }

  void measure() {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const int begin = i == 0 ? 0 : found_[i - 1].index;
      const int end = i + 1 == found_.size() ? static_cast<int>(values_.size()) : found_[i + 1].index;
      found_[i].change = std::expm1(centre(found_[i].index, end) - centre(begin, found_[i].index));
    }
  }

  std::span<const double> values_;
  ChangePointOptions options_;
  std::mt19937_64 random_;
  std::vector<Part> parts_;  // in order
  std::vector<ChangePoint> found_;
};

}  // namespace

SeriesDivision best_division(std::span<const double> values, int shortest) {
  const auto count = static_cast<int>(values.size());
  // The sums of the distances among the first values, and from each value to the ones between it and the end.
  std::vector<double> within_first(static_cast<std::size_t>(count) + 1, 0);
  std::vector<double> to_later(static_cast<std::size_t>(count), 0);
  SeriesDivision best;
  for (int end = 1; end <= count; ++end) {
    const double value = values[static_cast<std::size_t>(end - 1)];
    double added = 0;
    for (int i = 0; i + 1 < end; ++i) {
      const double distance = std::abs(value - values[static_cast<std::size_t>(i)]);
      to_later[static_cast<std::size_t>(i)] += distance;
      added += distance;
    }
    const double all = within_first[static_cast<std::size_t>(end - 1)] + added;
    within_first[static_cast<std::size_t>(end)] = all;
    double within_second = 0;
    for (int first = end - 1; first >= shortest; --first) {
      within_second += to_later[static_cast<std::size_t>(first)];
      if (end - first < shortest) continue;
      const double before = within_first[static_cast<std::size_t>(first)];
      const double q = divergence(all - before - within_second, before, within_second, first, end - first);
      if (q > best.q) best = {first, end - first, q};
    }
  }
  return best;
}

std::vector<ChangePoint> change_points(std::span<const double> logs, const ChangePointOptions& options) {
  if (logs.empty()) return {};
  Divisive divisive(logs, options);
  while (divisive.divide()) {
  }
  return divisive.result();
}

}  // namespace tandem
