// Interpolates rates at any size from samples measured at a few.
//
// All interpolation is linear in the logarithms of size and rate, because rates follow power laws piecewise (half the
// size, half the rate, while latency dominates). Beyond the samples, the rate of the nearest one is used.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "topologies/topology.h"

namespace tandem::sim {

struct RateAt {
  double per_s = 0;
  bool is_extrapolated = false;
};

// Rates over one size, for element-wise work and copies.
class RateCurve {
 public:
  RateCurve() = default;
  explicit RateCurve(std::span<const RateSample> samples);
  bool empty() const { return points_.empty(); }
  RateAt at(double bytes) const;

 private:
  std::vector<std::array<double, 2>> points_;  // logarithms of bytes and rate, ascending
};

// Rates of matrix multiplications over m, n and k. Samples that form a full grid are interpolated along its
// three axes; others by the inverse square of their distances.
class GemmSurface {
 public:
  GemmSurface() = default;
  explicit GemmSurface(std::span<const GemmSample> samples);
  bool empty() const { return points_.empty(); }
  RateAt at(double m, double n, double k) const;
  double largest_per_s() const;

 private:
  using Point = std::array<double, 3>;
  struct Sample {
    Point at;
    double rate = 0;
  };
  double on_grid(const Point& point) const;
  double by_distance(const Point& point) const;

  std::vector<Sample> points_;  // logarithms
  std::array<std::vector<double>, 3> axes_;
  std::vector<double> grid_;  // by (m, n, k), k fastest; empty where samples are missing
};

}  // namespace tandem::sim
