// What measured times of a collective say about other sizes, numbers of devices and numbers of nodes.
//
// Sizes. A larger size never truly takes less time, so each point first gets the least time of its own and all larger
// sizes; this repairs a slow outlier and keeps the step where a library changes its protocol. Between two points the
// time is linear in bytes. Where the times are known that a model predicts from the links alone, it is the geometric
// mean of that line and the model's time multiplied by the residual (measured / model), which is interpolated in the
// logarithm of the size. Below the smallest size the time is flat, above the largest it goes on like the last interval.
//
// Devices. At equal bytes for each device the time is a straight line in the number of an algorithm's steps, as long as
// the bus bandwidth stays the same. Where the model's times are known, it is the geometric mean of that line, bent as
// the model's own times leave a line, and of the model's time multiplied by the residual of the nearest measured number
// of devices. Where the bus bandwidth differs, it is the latter alone. Nodes. The model's time is multiplied by the
// residual of fewer nodes.
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
  // At least one point. Of several times at one size the median counts. Throws UsageError for a point that cannot be.
  CollectiveFit(CollectiveKind kind, const std::vector<CollectivePoint>& measured);

  struct Prediction {
    double time_s = 0;
    std::string basis;             // "interpolated", "line over 2 and 4 devices", "residual of 1 node", ...
    bool is_extrapolated = false;  // beyond the measured sizes, devices or nodes
  };
  // Reads all of `wanted` but its time_s. Returns nothing where the points do not say anything about it.
  std::optional<Prediction> predict(const CollectivePoint& wanted) const;

  bool has(int devices, int nodes) const { return curve(devices, nodes) != nullptr; }
  // The measured sizes, smallest first, on so many devices of so many nodes.
  std::vector<double> sizes(int devices, int nodes) const;
  // How many measured times were longer than one at a larger size, and thus replaced by it.
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
  // The size at which so many devices have as many bytes each as `wanted`.
  double equal_bytes(const CollectivePoint& wanted, int devices) const;

  CollectiveKind kind_;
  std::map<Shape, Curve> curves_;
};

}  // namespace tandem
