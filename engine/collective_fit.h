// Predicts the time of a collective from times measured at other sizes, numbers of devices and numbers of nodes.
//
// Sizes. A larger size never truly takes less time, so each point first gets the least time of its own and all larger
// sizes; this repairs a slow outlier and keeps the step where a library changes its protocol. Between two points the
// time is linear in bytes. Where a model's predictions from the links alone are known, it is the geometric mean of that
// line and of the model's time multiplied by the residual (measured / model), which is interpolated in the logarithm of
// the size. Below the smallest size the time is flat; above the largest, it continues the last interval.
//
// Devices. With equal bytes for each device, and as long as the bus bandwidth stays the same, the time is a straight
// line over the number of an algorithm's steps. Where the model's times are known, this line is bent by as much as they
// deviate from a line of their own, and the time is the geometric mean of the bent line and of the model's time
// multiplied by a measured residual. Otherwise the time is the model's, multiplied by the residual of the nearest
// measured number of devices.
//
// Nodes. The time is the model's, multiplied by the residual of the nearest smaller measured number of nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/collective.h"

namespace tandem {

struct CollectivePoint {
  int devices = 0;     // of all nodes together, at least 2
  int nodes = 1;       // physical machines
  double bytes = 0;    // CollectiveSpec::buffer_bytes(), greater than 0
  double time_s = 0;   // measured, greater than 0
  double model_s = 0;  // what a model predicts from the links alone; 0: not known
};

class CollectiveFit {
 public:
  // Takes at least one point, and the median of repeated sizes. Throws UsageError for an impossible point.
  CollectiveFit(CollectiveKind kind, const std::vector<CollectivePoint>& measured);

  struct Prediction {
    double time_s = 0;
    std::string basis;             // "interpolated", "line over 2 and 4 devices", "residual of 1 node", ...
    bool is_extrapolated = false;  // beyond the measured sizes, devices or nodes
  };
  // Predicts the time of `wanted`, whose own time_s is ignored. Returns nothing where the measured points say nothing
  // about it.
  std::optional<Prediction> predict(const CollectivePoint& wanted) const;

  bool has(int devices, int nodes) const { return curve(devices, nodes) != nullptr; }
  // The sizes measured on this many devices of this many nodes, smallest first.
  std::vector<double> sizes(int devices, int nodes) const;
  // The number of measured times that were replaced by a shorter one at a larger size.
  int repaired(int devices, int nodes) const;

 private:
  struct Curve {
    std::vector<CollectivePoint> points;  // by bytes, repaired
    int repaired = 0;

    double time_s(double bytes, double model_s) const;
    double line_s(double bytes) const;
    bool is_modelled() const;
    std::optional<double> residual(double bytes) const;
    std::optional<double> modelled_s(double bytes) const;
    bool covers(double bytes) const { return bytes >= points.front().bytes && bytes <= points.back().bytes; }
  };
  using Shape = std::pair<int, int>;  // nodes, devices

  const Curve* curve(int devices, int nodes) const;
  std::optional<Prediction> on_other_devices(const CollectivePoint& wanted) const;
  std::optional<Prediction> on_other_nodes(const CollectivePoint& wanted) const;
  double line_over_devices_s(const CollectivePoint& wanted, int a, int b) const;
  std::optional<double> bent_line_s(const CollectivePoint& wanted, int a, int b) const;
  bool have_equal_bandwidth(int devices, int other_devices, int nodes) const;
  // The size at which each of this many devices has as many bytes as each device of `wanted`.
  double equal_bytes(const CollectivePoint& wanted, int devices) const;

  CollectiveKind kind_;
  std::map<Shape, Curve> curves_;
};

}  // namespace tandem
