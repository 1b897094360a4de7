// The Wilcoxon signed-rank test, exact, as an estimate with an interval (Hollander, Wolfe and Chicken, Nonparametric
// Statistical Methods, 3rd edition, sections 3.1 to 3.3). Differences are taken as symmetric about their centre;
// nothing else is assumed of their distribution.
#pragma once

#include <optional>
#include <vector>

namespace tandem {

// The largest k for which the sum of the positive ranks of `count` differences about 0 is at most k with a probability
// of at most `level`; empty: there is none. `count` is 1 to 62.
std::optional<int> signed_rank_critical_value(int count, double level);

// The probability that the sum of the positive ranks is at most `sum`.
double signed_rank_probability(int count, int sum);

struct CentreInterval {
  double estimate =
      0;  // Hodges and Lehmann: the median of the means of all pairs, each difference with itself included
  double lower = 0, upper = 0;
};

// The centre of the differences, with an interval beyond each of whose ends it lies with a probability of at most
// `level`. Empty: there are too few differences for the level. At most 62 of them.
std::optional<CentreInterval> centre_of(const std::vector<double>& differences, double level);

// The two-sided p-value of the hypothesis that the centre is 0. Differences of 0 are left out. Tied ranks are shared,
// and half a rank counts as a whole one, which makes the value too large rather than too small.
double signed_rank_p_value(const std::vector<double>& differences);

// Holm's step-down correction of p-values that are looked at together; in the same order.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace tandem
