#include "engine/sim/rate_curves.h"

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
  for (const GemmSample& sample : samples) {
    points_.push_back({{log_of(sample.m), log_of(sample.n), log_of(sample.k)}, portable::log(sample.flops_per_s)});
  }
  std::sort(points_.begin(), points_.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
  const auto same = [](const Sample& a, const Sample& b) { return a.at == b.at; };
  points_.erase(std::unique(points_.begin(), points_.end(), same), points_.end());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    for (const Sample& point : points_) axes_[axis].push_back(point.at[axis]);
    std::sort(axes_[axis].begin(), axes_[axis].end());
    axes_[axis].erase(std::unique(axes_[axis].begin(), axes_[axis].end()), axes_[axis].end());
  }
  // The points are distinct, lie on the axes, and are as many as the grid has corners: they are its corners, sorted.
  if (points_.size() != axes_[0].size() * axes_[1].size() * axes_[2].size()) return;
  for (const Sample& point : points_) grid_.push_back(point.rate);
}

RateAt GemmSurface::at(double m, double n, double k) const {
  const Point point{log_of(m), log_of(n), log_of(k)};
  bool outside = false;
  Point clamped = point;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    clamped[axis] = std::clamp(point[axis], axes_[axis].front(), axes_[axis].back());
    outside = outside || std::abs(clamped[axis] - point[axis]) > 1e-9;
  }
  return {portable::exp(grid_.empty() ? by_distance(clamped) : on_grid(clamped)), outside};
}

double GemmSurface::largest_per_s() const {
  double largest = 0;
  for (const Sample& point : points_) largest = std::max(largest, portable::exp(point.rate));
  return largest;
}

double GemmSurface::on_grid(const Point& point) const {
  std::array<Position, 3> position;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) position[axis] = locate(axes_[axis], point[axis]);
  double rate = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      const bool above = ((corner >> axis) & 1u) != 0;
      weight *= above ? position[axis].fraction : 1 - position[axis].fraction;
      index = index * axes_[axis].size() + position[axis].below + (above ? 1 : 0);
    }
    if (weight > 0) rate += weight * grid_[index];
  }
  return rate;
}

double GemmSurface::by_distance(const Point& point) const {
  double weights = 0;
  double rate = 0;
  for (const Sample& sample : points_) {
    double distance = 0;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      distance += (sample.at[axis] - point[axis]) * (sample.at[axis] - point[axis]);
    }
    if (distance < 1e-18) return sample.rate;
    weights += 1 / distance;
    rate += sample.rate / distance;
  }
  return rate / weights;
}

}  // namespace tandem::sim
