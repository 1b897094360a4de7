// Change points: where the distribution of a series changes, found by E-divisive (D. S. Matteson and N. A. James, "A
// Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", Journal of the American Statistical
// Association 109 (2014), pages 334 to 345, section 2), for values of one dimension and distances to the power of 1.
//
// The difference between two neighbouring parts X and Y of n and m values is
//   q(X, Y) = mn / (m + n) * (2 mean|x - y| - mean|x - x'| - mean|y - y'|),
// with means over pairs of different values. The series is divided where q is largest, then its parts in the same way,
// as long as the largest q is significant: when values are permuted within the parts found so far, a q as large as this
// must be rare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct ChangePoint {
  int index = 0;       // of the first value after the change
  double change = 0;   // new / old - 1, by the medians of the parts on both sides
  double p_value = 0;  // of the permutation test that found it
};

struct ChangePointOptions {
  double margin = 0.03;      // least change
  int shortest = 5;          // part of the series between changes
  double level = 0.05;       // largest p-value
  int permutations = 199;    // as in the authors' R package ecp
  std::uint64_t seed = 334;  // equal series give equal change points
};

// Returns the change points of a series of logarithms, in order. A change that is smaller than the margin does not
// count: its two parts are joined.
std::vector<ChangePoint> change_points(std::span<const double> logs, const ChangePointOptions& options = {});

// The best division of a series into its first `first` values, the next `second` values, and a rest that is in neither
// part. Both parts have at least `shortest` values; `q` is 0 where the series is too short for that.
struct SeriesDivision {
  int first = 0;
  int second = 0;
  double q = 0;
};
SeriesDivision best_division(std::span<const double> values, int shortest);

}  // namespace tandem
