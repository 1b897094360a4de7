#include "engine/sim/costs/rate_curves.h"

#include <algorithm>
#include <cmath>

#include "topologies/base/portable_math.h"

namespace tandem::sim {
namespace {

constexpr double kSmallest = 1;  // a dimension or size of 0 counts as 1

double log_of(double value) {
  return portable::log(std::max(value, kSmallest));
}

struct Position {
  std::size_t below = 0;
  double fraction = 0;  // towards below + 1
};

Position locate(const std::vector<double>& axis, double value) {
  if (axis.size() == 1 || value <= axis.front()) return {};
  if (value >= axis.back()) return {axis.size() - 2, 1};
  const auto above = std::upper_bound(axis.begin(), axis.end(), value);
  const auto below = static_cast<std::size_t>(above - axis.begin()) - 1;
  return {below, (value - axis[below]) / (axis[below + 1] - axis[below])};
}

}  // namespace

RateCurve::RateCurve(std::span<const RateSample> samples) {
  for (const RateSample& sample : samples) points_.push_back({log_of(sample.bytes), portable::log(sample.bytes_per_s)});
  std::sort(points_.begin(), points_.end());
}

RateAt RateCurve::at(double bytes) const {
  const double x = log_of(bytes);
  if (x <= points_.front()[0]) return {portable::exp(points_.front()[1]), x < points_.front()[0] - 1e-9};
  if (x >= points_.back()[0]) return {portable::exp(points_.back()[1]), x > points_.back()[0] + 1e-9};
  const auto above = std::find_if(points_.begin(), points_.end(), [x](const auto& point) { return point[0] > x; });
  const auto& low = *std::prev(above);
  const double fraction = (x - low[0]) / ((*above)[0] - low[0]);
  return {portable::exp(low[1] + fraction * ((*above)[1] - low[1])), false};
}

GemmSurface::GemmSurface(std::span<const GemmSample> samples) {
  std::vector<Sample> all;
  double cube = 0;  // the largest, as a logarithm
  for (const GemmSample& sample : samples) {
    all.push_back({{log_of(sample.m), log_of(sample.n), log_of(sample.k)}, portable::log(sample.flops_per_s)});
    if (sample.m == sample.n && sample.n == sample.k) cube = std::max(cube, all.back().at.front());
  }
  std::sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
  const auto same = [](const Sample& a, const Sample& b) { return a.at == b.at; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  core_ = grid_of(all);
  if (!core_.values.empty() || cube == 0) {
    points_ = std::move(all);
    return;
  }
  std::array<std::vector<Sample>, 3> longer;
  for (const Sample& sample : all) {
    const auto is_long = [&](double side) { return side > cube; };
    const auto first = std::find_if(sample.at.begin(), sample.at.end(), is_long);
    if (first == sample.at.end()) {
      points_.push_back(sample);
    } else if (std::none_of(std::next(first), sample.at.end(), is_long)) {
      longer.at(static_cast<std::size_t>(first - sample.at.begin())).push_back(sample);
    }
  }
  core_ = grid_of(points_);
  for (std::size_t axis = 0; axis < longer.size() && !core_.values.empty(); ++axis) {
    add_longer(axis, std::move(longer.at(axis)));
  }
}

// The points are distinct and lie on the axes. If they are as many as the grid has corners, they are its corners.
GemmSurface::Grid GemmSurface::grid_of(const std::vector<Sample>& sorted) {
  Grid grid;
  std::size_t corners = 1;
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    std::vector<double>& values = grid.axes[axis];
    for (const Sample& point : sorted) values.push_back(point.at[axis]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    corners *= values.size();
  }
  if (sorted.size() != corners) return grid;
  for (const Sample& point : sorted) grid.values.push_back(point.rate);
  return grid;
}

// Turns the rates of products with a long side into factors, and puts factors of 1 at the boundary of the core.
void GemmSurface::add_longer(std::size_t axis, std::vector<Sample> samples) {
  const double boundary = core_.axes[axis].back();
  const std::size_t count = samples.size();
  for (std::size_t i = 0; i < count; ++i) {
    Sample nearest = samples[i];
    nearest.at[axis] = boundary;
    nearest.rate = 0;
    samples[i].rate -= core_at(clamped(nearest.at, core_.axes));
    samples.push_back(nearest);
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
  const auto same = [](const Sample& a, const Sample& b) { return a.at == b.at; };
  samples.erase(std::unique(samples.begin(), samples.end(), same), samples.end());
  longer_[axis] = grid_of(samples);
}

GemmSurface::Point GemmSurface::clamped(const Point& point, const Axes& axes) {
  Point inside = point;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    inside[axis] = std::clamp(point[axis], axes[axis].front(), axes[axis].back());
  }
  return inside;
}

RateAt GemmSurface::at(double m, double n, double k) const {
  constexpr double kRounding = 1e-9;
  const Point point{log_of(m), log_of(n), log_of(k)};
  const Point inside = clamped(point, core_.axes);
  double rate = core_at(inside);
  bool outside = false;
  int long_sides = 0;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    if (std::abs(point[axis] - inside[axis]) <= kRounding) continue;
    const Grid& grid = longer_[axis];
    if (point[axis] < inside[axis] || grid.values.empty()) {
      outside = true;
      continue;
    }
    Point beyond = inside;
    beyond[axis] = point[axis];
    const Point measured = clamped(beyond, grid.axes);
    outside = outside || beyond[axis] - measured[axis] > kRounding || ++long_sides > 1;
    rate += grid.at(measured);
  }
  return {portable::exp(rate), outside};
}

double GemmSurface::core_at(const Point& point) const {
  return core_.values.empty() ? by_distance(point) : core_.at(point);
}

double GemmSurface::largest_per_s() const {
  double largest = 0;
  for (const Sample& point : points_) largest = std::max(largest, portable::exp(point.rate));
  return largest;
}

double GemmSurface::Grid::at(const Point& point) const {
  std::array<Position, 3> position;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) position[axis] = locate(axes[axis], point[axis]);
  double rate = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const bool above = ((corner >> axis) & 1u) != 0;
      weight *= above ? position[axis].fraction : 1 - position[axis].fraction;
      index = index * axes[axis].size() + position[axis].below + (above ? 1 : 0);
    }
    if (weight > 0) rate += weight * values[index];
  }
  return rate;
}

double GemmSurface::by_distance(const Point& point) const {
  double weights = 0;
  double rate = 0;
  for (const Sample& sample : points_) {
    double distance = 0;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      distance += (sample.at[axis] - point[axis]) * (sample.at[axis] - point[axis]);
    }
    if (distance < 1e-18) return sample.rate;
    weights += 1 / distance;
    rate += sample.rate / distance;
  }
  return rate / weights;
}

}  // namespace tandem::sim
