#include "scenarios/fitting/collective_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "engine/collective_fit.h"
#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "scenarios/estimates/link_limits.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

using calibration::LinkLimits;

constexpr double kMicrosecondsPerSecond = 1e6;
// Sizes at which another cost begins to dominate: latency, protocols, bandwidth.
constexpr std::array kBands{32.0 * 1024, 1024.0 * 1024, 64.0 * 1024 * 1024, std::numeric_limits<double>::infinity()};

// Tables with equal keys measure the same thing.
using Key = std::tuple<CollectiveKind, int, int>;  // nodes, devices

struct Measured {
  std::vector<const CollectiveTable*> tables;
  std::map<double, std::vector<double>> times_s;  // by bytes
};

[[noreturn]] void refuse(const CollectiveTable& table, std::string message) {
  throw InputError({{.file = table.file, .line = std::max(1, table.line), .path = "", .message = std::move(message)}});
}

int gpus_of_machine(const Topology& topology) {
  return topology.worker_count() == 0 ? 0 : static_cast<int>(topology.nodes_of(0, NodeKind::gpu).size());
}

// If a table does not state the number of machines, its devices fill one machine after the other.
int nodes_of(const CollectiveTable& table, int gpus) {
  if (table.nodes > 0) return table.nodes;
  return gpus == 0 ? 1 : (table.devices + gpus - 1) / gpus;
}

Key key_of(const CollectiveTable& table, const Topology& topology) {
  const auto kind = kind_of_operation(table.operation);
  if (!kind) refuse(table, fmt::format("a table of '{}', which is no collective of Tandem", table.operation));
  if (table.devices < 2) refuse(table, "a table that does not say on how many devices it was measured, at least 2");
  const int gpus = gpus_of_machine(topology), nodes = nodes_of(table, gpus);
  if (nodes > table.devices) refuse(table, fmt::format("{} devices on {} machines", table.devices, nodes));
  if (gpus > 0 && table.devices > gpus * nodes) {
    refuse(table, fmt::format("{} devices on {} machine{} of topology '{}', which has {} GPUs in each", table.devices,
                              nodes, nodes == 1 ? "" : "s", topology.name(), gpus));
  }
  return {*kind, nodes, table.devices};
}

// Libraries reduce integers of 8 bits by other algorithms than floats (no NVLS), and models train with floats.
bool is_of_small_integers(const CollectiveTable& table) {
  const auto dtype = dtype_of_nccl(table.dtype);
  return dtype && size_of(*dtype) == 1;
}

std::string place_of(const Key& key) {
  const auto& [kind, nodes, devices] = key;
  std::string text = fmt::format("{} on {} devices", name_of(kind), devices);
  if (nodes > 1) text += fmt::format(" of {} machines", nodes);
  return text;
}

std::map<Key, Measured> collected(const std::vector<CollectiveTable>& tables, const Topology& topology,
                                  std::vector<std::string>& notes) {
  std::map<Key, Measured> all;
  for (const CollectiveTable& table : tables) all[key_of(table, topology)].tables.push_back(&table);
  for (auto& [key, measured] : all) {
    auto& kept = measured.tables;
    const bool has_floats =
        !std::all_of(kept.begin(), kept.end(), [](const auto* t) { return is_of_small_integers(*t); });
    if (is_reducing(std::get<0>(key)) && has_floats) {
      const auto left_out = std::erase_if(kept, [](const auto* table) { return is_of_small_integers(*table); });
      if (left_out > 0) {
        notes.push_back(fmt::format("{}: {} table{} of 8-bit integers left out, floats were measured as well",
                                    place_of(key), left_out, left_out == 1 ? "" : "s"));
      }
    }
    for (const CollectiveTable* table : kept) {
      for (const CollectiveRow& row : table->rows) {
        if (row.bytes > 0 && row.time_us() > 0) {
          measured.times_s[static_cast<double>(row.bytes)].push_back(row.time_us() / kMicrosecondsPerSecond);
        }
      }
    }
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.times_s.empty(); });
  return all;
}

double median_distance(const std::vector<double>& values, double median) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  return median_of(std::move(distances));
}

std::string algorithm_of(const Measured& measured, double bytes) {
  for (const CollectiveTable* table : measured.tables) {
    for (const CollectiveRow& row : table->rows) {
      if (static_cast<double>(row.bytes) == bytes && !row.algorithm.empty()) return row.algorithm;
    }
  }
  return {};
}

std::vector<CollectiveSample> samples_of(const Key& key, const Measured& measured) {
  const auto& [kind, nodes, devices] = key;
  std::vector<CollectiveSample> samples;
  for (const auto& [bytes, times] : measured.times_s) {
    const double time_s = median_of(times);
    samples.push_back({.operation = operation_of(kind),
                       .devices = devices,
                       .bytes = bytes,
                       .time_s = time_s,
                       .relative_spread = median_distance(times, time_s) / time_s,
                       .nodes = nodes,
                       .algorithm = algorithm_of(measured, bytes)});
  }
  return samples;
}

std::vector<CollectivePoint> points_of(CollectiveKind kind, const std::vector<CollectiveSample>& samples,
                                       const LinkTimes& links) {
  std::vector<CollectivePoint> points;
  std::vector<double> bytes;
  for (const CollectiveSample& sample : samples) {
    points.push_back(
        {.devices = sample.devices, .nodes = sample.nodes, .bytes = sample.bytes, .time_s = sample.time_s});
    bytes.push_back(sample.bytes);
  }
  if (!links || samples.empty()) return points;
  const std::vector<double> times = links(kind, samples.front().devices, samples.front().nodes, bytes);
  for (std::size_t i = 0; i < times.size(); ++i) points[i].model_s = times[i];
  return points;
}

double error_of(const CollectiveFit& fit, const CollectivePoint& point) {
  return std::abs(fit.predict(point)->time_s / point.time_s - 1);
}

std::vector<CalibrationBand> bands_of(CollectiveKind kind, const std::vector<CollectivePoint>& points) {
  struct Errors {
    std::vector<double> links, fit, left_out;
  };
  std::map<double, Errors> errors;
  const CollectiveFit whole(kind, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    Errors& band = errors[*std::lower_bound(kBands.begin(), kBands.end(), points[i].bytes)];
    band.fit.push_back(error_of(whole, points[i]));
    if (points[i].model_s > 0) band.links.push_back(std::abs(points[i].model_s / points[i].time_s - 1));
    if (i == 0 || i + 1 == points.size()) continue;
    std::vector<CollectivePoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    band.left_out.push_back(error_of(CollectiveFit(kind, others), points[i]));
  }
  std::vector<CalibrationBand> bands;
  for (auto& [up_to, band] : errors) {
    CalibrationBand result;
    result.up_to_bytes = up_to;
    result.points = static_cast<int>(band.fit.size());
    if (!band.links.empty()) result.links_median = median_of(band.links);
    result.fit_median = median_of(band.fit);
    result.left_out = static_cast<int>(band.left_out.size());
    if (!band.left_out.empty()) {
      result.left_out_median = median_of(band.left_out);
      result.left_out_p95 = p95_of(band.left_out);
    }
    bands.push_back(result);
  }
  return bands;
}

CalibratedCollective described(const Key& key, const Measured& measured, const std::vector<CollectiveSample>& samples,
                               const LinkTimes& links) {
  const auto& [kind, nodes, devices] = key;
  CalibratedCollective result;
  result.operation = operation_of(kind);
  result.devices = devices;
  result.nodes = nodes;
  std::set<std::string> files;
  for (const CollectiveTable* table : measured.tables) files.insert(table->file);
  result.files.assign(files.begin(), files.end());
  result.least_bytes = samples.front().bytes;
  result.most_bytes = samples.back().bytes;
  const std::vector<CollectivePoint> points = points_of(kind, samples, links);
  result.repaired = CollectiveFit(kind, points).repaired(devices, nodes);
  result.bands = bands_of(kind, points);
  std::vector<double> spreads;
  for (const CollectiveSample& sample : samples) {
    if (measured.times_s.at(sample.bytes).size() > 1) spreads.push_back(sample.relative_spread);
  }
  if (!spreads.empty()) result.relative_spread = median_of(std::move(spreads));
  return result;
}

}  // namespace

// Names the size that contradicts the links most.
std::optional<std::string> contradiction_of(CollectiveKind kind, int nodes, int devices,
                                            const std::vector<CollectiveSample>& samples, const LinkLimits& limits) {
  std::optional<calibration::Contradiction> worst;
  double bytes = 0;
  int count = 0;
  for (const CollectiveSample& sample : samples) {
    const auto found = limits.contradiction(kind, devices, nodes, sample.bytes, sample.time_s);
    if (!found) continue;
    ++count;
    if (worst && worst->carried >= found->carried) continue;
    worst = found;
    bytes = sample.bytes;
  }
  if (!worst) return {};
  return fmt::format("{}: {} of {} sizes are faster than the links; {} would need {}, and {} carry {}",
                     place_of({kind, nodes, devices}), count, samples.size(),
                     size_text(static_cast<std::int64_t>(bytes)),
                     format_quantity(worst->carried, Dimension::bytes_per_second), worst->links,
                     format_quantity(worst->limit, Dimension::bytes_per_second));
}

CollectiveCalibration calibrate_collectives(const std::vector<CollectiveTable>& tables, const Topology& topology,
                                            const LinkTimes& links) {
  CollectiveCalibration calibration;
  const LinkLimits limits(topology);
  for (const auto& [key, measured] : collected(tables, topology, calibration.notes)) {
    const std::vector<CollectiveSample> samples = samples_of(key, measured);
    calibration.collectives.push_back(described(key, measured, samples, links));
    const auto& [kind, nodes, devices] = key;
    if (auto line = contradiction_of(kind, nodes, devices, samples, limits))
      calibration.contradictions.push_back(std::move(*line));
    calibration.samples.insert(calibration.samples.end(), samples.begin(), samples.end());
  }
  return calibration;
}

}  // namespace tandem
