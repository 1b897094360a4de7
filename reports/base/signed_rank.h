// The exact Wilcoxon signed-rank test, as an estimate with an interval (Hollander, Wolfe and Chicken, Nonparametric
// Statistical Methods, 3rd edition, sections 3.1 to 3.3). Differences are assumed to be symmetric about their centre;
// nothing else is assumed about their distribution.
#pragma once

#include <optional>
#include <vector>

namespace tandem {

// Returns the largest k for which the sum of the positive ranks of `count` differences about 0 is at most k with a
// probability of at most `level`, or nothing if there is none. `count` is 1 to 62.
std::optional<int> signed_rank_critical_value(int count, double level);

// Returns the probability that the sum of the positive ranks is at most `sum`.
double signed_rank_probability(int count, int sum);

struct CentreInterval {
  double estimate =
      0;  // Hodges and Lehmann: the median of the means of all pairs, each difference with itself included
  double lower = 0, upper = 0;
};

// Returns the centre of at most 62 differences, with an interval: the centre lies beyond either end with a probability
// of at most `level`. Returns nothing if there are too few differences for the level.
std::optional<CentreInterval> centre_of(const std::vector<double>& differences, double level);

// Returns the two-sided p-value of the hypothesis that the centre is 0. Differences of 0 are left out. Tied ranks are
// shared, and half a rank counts as a whole one, which makes the value too large rather than too small.
double signed_rank_p_value(const std::vector<double>& differences);

// Returns Holm's step-down correction of p-values that are looked at together, in the same order.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace tandem
