#include "engine/collective_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

// Two numbers of devices have "the same" bus bandwidth within this factor. The last step of a ring leaves the wire
// idle, so that 2 devices reach 0.72 of what 8 reach on the same links (all_gather, ai-dynamo/aiconfigurator commit
// 095f58a5, a100_sxm 2.27.3); another set of links differs by 3 and more (a mesh of NVLinks, a cube mesh).
constexpr double kSameBandwidth = 1.6;
// From this size on, bandwidth alone decides the time of a collective.
constexpr double kBandwidthBytes = 16 << 20;

bool divides_its_bytes(CollectiveKind kind) {
  return input_parts(kind, 2) > 1 || output_parts(kind, 2) > 1 || kind == CollectiveKind::all_reduce;
}

void check_point(const CollectivePoint& point) {
  TANDEM_REQUIRE(point.devices >= 2 && point.nodes >= 1 && point.nodes <= point.devices,
                 fmt::format("a collective on {} devices of {} nodes", point.devices, point.nodes));
  TANDEM_REQUIRE(point.bytes > 0 && std::isfinite(point.bytes), fmt::format("a collective of {} bytes", point.bytes));
  TANDEM_REQUIRE(point.model_s >= 0 && std::isfinite(point.model_s),
                 fmt::format("a modelled time of {} s", point.model_s));
}

// Keeps one point for each size, the median of those given.
std::vector<CollectivePoint> one_for_each_size(std::vector<CollectivePoint> points) {
  std::stable_sort(points.begin(), points.end(), [](const CollectivePoint& a, const CollectivePoint& b) {
    return std::pair(a.bytes, a.time_s) < std::pair(b.bytes, b.time_s);
  });
  std::vector<CollectivePoint> kept;
  for (auto first = points.begin(); first != points.end();) {
    const auto end =
        std::find_if(first, points.end(), [&](const CollectivePoint& point) { return point.bytes != first->bytes; });
    const auto size = end - first;
    kept.push_back(*(first + (size - 1) / 2));
    kept.back().time_s = (kept.back().time_s + (first + size / 2)->time_s) / 2;
    first = end;
  }
  return kept;
}

// Returns the index of the interval between two points that contains a size; the first or the last one if none does.
std::size_t interval_of(const std::vector<CollectivePoint>& points, double bytes) {
  const auto above = std::upper_bound(points.begin(), points.end(), bytes,
                                      [](double size, const CollectivePoint& point) { return size < point.bytes; });
  const auto index = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, above - points.begin() - 1));
  return std::min(index, points.size() - 2);
}

std::string devices_text(int devices) {
  return fmt::format("{} device{}", devices, devices == 1 ? "" : "s");
}

// Interpolates in the logarithms of size and value. Outside the points it returns the value of the nearest one.
template <typename Value>
double in_logarithms(const std::vector<CollectivePoint>& points, double bytes, Value value) {
  if (bytes <= points.front().bytes) return value(points.front());
  if (bytes >= points.back().bytes) return value(points.back());
  const std::size_t i = interval_of(points, bytes);
  const CollectivePoint &low = points[i], &high = points[i + 1];
  const double fraction = portable::log(bytes / low.bytes) / portable::log(high.bytes / low.bytes);
  return value(low) * portable::pow(value(high) / value(low), fraction);
}

// Returns the time on the line through the times of `a` and `b` devices, at equal bytes for each device. More steps
// never take less time, and time never grows faster than the number of steps.
double on_line(double a_s, double b_s, int a, int b, int devices) {
  const double line_s = a_s + (b_s - a_s) * (devices - a) / (b - a);
  const double at_one_step_each = b_s * (devices - 1) / (b - 1);
  return std::clamp(line_s, std::min(b_s, at_one_step_each), std::max(b_s, at_one_step_each));
}

}  // namespace

CollectiveFit::CollectiveFit(CollectiveKind kind, const std::vector<CollectivePoint>& measured) : kind_(kind) {
  TANDEM_REQUIRE(!measured.empty(), "a fit without points");
  for (const CollectivePoint& point : measured) {
    check_point(point);
    TANDEM_REQUIRE(point.time_s > 0 && std::isfinite(point.time_s),
                   fmt::format("a measured time of {} s", point.time_s));
    curves_[{point.nodes, point.devices}].points.push_back(point);
  }
  for (auto& [shape, curve] : curves_) {
    curve.points = one_for_each_size(std::move(curve.points));
    for (std::size_t i = curve.points.size() - 1; i-- > 0;) {
      if (curve.points[i].time_s <= curve.points[i + 1].time_s) continue;
      curve.points[i].time_s = curve.points[i + 1].time_s;
      ++curve.repaired;
    }
  }
}

const CollectiveFit::Curve* CollectiveFit::curve(int devices, int nodes) const {
  const auto found = curves_.find({nodes, devices});
  return found == curves_.end() ? nullptr : &found->second;
}

std::vector<double> CollectiveFit::sizes(int devices, int nodes) const {
  std::vector<double> sizes;
  if (const Curve* measured = curve(devices, nodes)) {
    for (const CollectivePoint& point : measured->points) sizes.push_back(point.bytes);
  }
  return sizes;
}

int CollectiveFit::repaired(int devices, int nodes) const {
  const Curve* measured = curve(devices, nodes);
  return measured == nullptr ? 0 : measured->repaired;
}

// If the last two times are equal, noise has hidden the slope, so the bandwidth of the last point is used.
double CollectiveFit::Curve::line_s(double bytes) const {
  if (bytes <= points.front().bytes) return points.front().time_s;
  const CollectivePoint& last = points.back();
  if (points.size() == 1) return last.time_s * bytes / last.bytes;
  const std::size_t i = interval_of(points, bytes);
  const CollectivePoint &low = points[i], &high = points[i + 1];
  const double slope = (high.time_s - low.time_s) / (high.bytes - low.bytes);
  if (bytes > last.bytes && slope <= 0) return last.time_s * bytes / last.bytes;
  return low.time_s + slope * (bytes - low.bytes);
}

bool CollectiveFit::Curve::is_modelled() const {
  return std::all_of(points.begin(), points.end(), [](const CollectivePoint& point) { return point.model_s > 0; });
}

std::optional<double> CollectiveFit::Curve::residual(double bytes) const {
  if (!is_modelled()) return {};
  return in_logarithms(points, bytes, [](const CollectivePoint& point) { return point.time_s / point.model_s; });
}

std::optional<double> CollectiveFit::Curve::modelled_s(double bytes) const {
  if (!is_modelled()) return {};
  const double beyond = std::max(1.0, bytes / points.back().bytes);
  return beyond * in_logarithms(points, bytes, [](const CollectivePoint& point) { return point.model_s; });
}

double CollectiveFit::Curve::time_s(double bytes, double model_s) const {
  const double line = line_s(bytes);
  const std::optional<double> factor = residual(bytes);
  if (!covers(bytes) || !factor || model_s <= 0) return line;
  const std::size_t i = points.size() == 1 ? 0 : interval_of(points, bytes);
  const double low_s = points[i].time_s, high_s = points[std::min(i + 1, points.size() - 1)].time_s;
  return std::sqrt(line * std::clamp(model_s * *factor, low_s, high_s));
}

std::optional<CollectiveFit::Prediction> CollectiveFit::predict(const CollectivePoint& wanted) const {
  check_point(wanted);
  if (const Curve* measured = curve(wanted.devices, wanted.nodes)) {
    const bool is_inside = measured->covers(wanted.bytes);
    return Prediction{measured->time_s(wanted.bytes, wanted.model_s),
                      is_inside ? "interpolated" : "beyond the measured sizes", !is_inside};
  }
  if (auto prediction = on_other_devices(wanted)) return prediction;
  return on_other_nodes(wanted);
}

double CollectiveFit::equal_bytes(const CollectivePoint& wanted, int devices) const {
  return divides_its_bytes(kind_) ? wanted.bytes * devices / wanted.devices : wanted.bytes;
}

bool CollectiveFit::have_equal_bandwidth(int devices, int other_devices, int nodes) const {
  const auto bandwidth = [&](int n) {
    const CollectivePoint& last = curve(n, nodes)->points.back();
    return std::pair(last.bytes, bus_bandwidth_factor(kind_, n) * last.bytes / last.time_s);
  };
  const auto [bytes, rate] = bandwidth(devices);
  const auto [other_bytes, other_rate] = bandwidth(other_devices);
  if (std::min(bytes, other_bytes) < kBandwidthBytes) return false;
  return std::max(rate, other_rate) < kSameBandwidth * std::min(rate, other_rate);
}

// As with measured times, a size takes no longer than a larger one. Sizes are those measured on `b` devices.
double CollectiveFit::line_over_devices_s(const CollectivePoint& wanted, int a, int b) const {
  const Curve &first = *curve(a, wanted.nodes), &second = *curve(b, wanted.nodes);
  const auto at = [&](double bytes_of_b) {
    const double a_s = first.line_s(divides_its_bytes(kind_) ? bytes_of_b * a / b : bytes_of_b);
    return on_line(a_s, second.line_s(bytes_of_b), a, b, wanted.devices);
  };
  const double bytes_of_b = equal_bytes(wanted, b);
  double time_s = at(bytes_of_b);
  for (const CollectivePoint& point : second.points) {
    if (point.bytes > bytes_of_b) time_s = std::min(time_s, at(point.bytes));
  }
  return time_s;
}

// If the model departs from the line through its own times, because another protocol or algorithm is chosen, the
// measured times are assumed to depart from theirs by the same factor.
std::optional<double> CollectiveFit::bent_line_s(const CollectivePoint& wanted, int a, int b) const {
  constexpr double kMostBend = 3;
  const Curve &first = *curve(a, wanted.nodes), &second = *curve(b, wanted.nodes);
  const double bytes_of_a = equal_bytes(wanted, a), bytes_of_b = equal_bytes(wanted, b);
  const auto a_model_s = first.modelled_s(bytes_of_a), b_model_s = second.modelled_s(bytes_of_b);
  const auto factor = second.residual(bytes_of_b);
  if (wanted.model_s <= 0 || !a_model_s || !b_model_s || !factor) return {};
  const double bend = wanted.model_s / on_line(*a_model_s, *b_model_s, a, b, wanted.devices);
  const double line_s = on_line(first.line_s(bytes_of_a), second.line_s(bytes_of_b), a, b, wanted.devices);
  return std::sqrt(line_s * std::clamp(bend, 1 / kMostBend, kMostBend) * wanted.model_s * *factor);
}

std::optional<CollectiveFit::Prediction> CollectiveFit::on_other_devices(const CollectivePoint& wanted) const {
  std::vector<int> measured;
  for (const auto& [shape, known] : curves_) {
    if (shape.first == wanted.nodes) measured.push_back(shape.second);
  }
  if (measured.empty()) return {};
  const auto above = std::upper_bound(measured.begin(), measured.end(), wanted.devices);
  if (measured.size() > 1) {
    const auto second = above == measured.begin() ? above + 1 : above == measured.end() ? above - 1 : above;
    const int a = *(second - 1), b = *second;
    if (have_equal_bandwidth(a, b, wanted.nodes)) {
      const double time_s = bent_line_s(wanted, a, b).value_or(line_over_devices_s(wanted, a, b));
      return Prediction{time_s, fmt::format("line over {} and {} devices", a, b), true};
    }
  }
  if (wanted.model_s <= 0) return {};
  const int nearest = above == measured.begin() ? *above : *(above - 1);
  const auto factor = curve(nearest, wanted.nodes)->residual(equal_bytes(wanted, nearest));
  if (!factor) return {};
  return Prediction{wanted.model_s * *factor, "residual of " + devices_text(nearest), true};
}

// Uses the measured shape with the most nodes below the wanted number and, among these, with the most devices.
std::optional<CollectiveFit::Prediction> CollectiveFit::on_other_nodes(const CollectivePoint& wanted) const {
  const auto above = curves_.lower_bound({wanted.nodes, 0});
  if (above == curves_.begin() || wanted.model_s <= 0) return {};
  const auto& [shape, known] = *std::prev(above);
  const auto factor = known.residual(wanted.bytes);
  if (!factor) return {};
  return Prediction{wanted.model_s * *factor,
                    fmt::format("residual of {} node{}", shape.first, shape.first == 1 ? "" : "s"), true};
}

}  // namespace tandem
