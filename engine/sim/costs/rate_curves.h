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

// Rates of matrix multiplications over m, n and k.
//
// Samples whose sides are at most the largest one of a cube form the core. If they are a full grid, they are
// interpolated along its three axes, otherwise by the inverse square of their distances. Products with one longer side
// may form a further grid for each axis: they say by which factor the rate changes beyond the core, where the core has
// the rates at its own boundary. The factors of several long sides are multiplied.
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
  using Axes = std::array<std::vector<double>, 3>;
  // Values at the corners of a grid, by (m, n, k), k fastest; empty where samples are missing.
  struct Grid {
    Axes axes;
    std::vector<double> values;
    double at(const Point& point) const;  // inside the axes
  };
  static Grid grid_of(const std::vector<Sample>& sorted);
  static Point clamped(const Point& point, const Axes& axes);
  void add_longer(std::size_t axis, std::vector<Sample> samples);
  double core_at(const Point& point) const;
  double by_distance(const Point& point) const;

  std::vector<Sample> points_;  // of the core, logarithms
  Grid core_;
  std::array<Grid, 3> longer_;  // logarithms of factors, by the axis of the long side; 0 at the core's boundary
};

}  // namespace tandem::sim
