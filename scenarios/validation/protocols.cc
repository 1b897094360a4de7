#include "scenarios/validation/protocols.h"

#include <algorithm>
#include <set>

#include "engine/collective_fit.h"

namespace tandem::validation {
namespace {

ValidationPoint point_of(const ReplayedTable& table, const ReplayedRow& row) {
  ValidationPoint point;
  point.file = table.file;
  point.site = table.site;
  point.family = table.family;
  point.group = table.group;
  point.collective = table.operation;
  point.dtype = table.dtype;
  point.devices = table.devices;
  point.nodes = table.nodes;
  point.bytes = row.bytes;
  point.measured_us = row.measured_us;
  point.predicted_us = row.model_us;
  point.basis = "links";
  point.algorithm = row.algorithm;
  point.apart = table.apart;
  return point;
}

CollectivePoint fit_point(const ReplayedTable& table, const ReplayedRow& row) {
  return {.devices = table.devices,
          .nodes = table.nodes,
          .bytes = static_cast<double>(row.bytes),
          .time_s = row.measured_us * 1e-6,
          .model_s = row.model_us * 1e-6};
}

ValidationPoint predicted(const CollectiveFit& fit, const ReplayedTable& table, const ReplayedRow& row) {
  ValidationPoint point = point_of(table, row);
  CollectivePoint wanted = fit_point(table, row);
  wanted.time_s = 0;
  if (const auto prediction = fit.predict(wanted)) {
    point.predicted_us = prediction->time_s * 1e6;
    point.basis = prediction->basis + (prediction->is_extrapolated ? ", extrapolated" : "");
  }
  return point;
}

CollectiveFit fit_of(const ReplayedTable& table, const std::vector<CollectivePoint>& points) {
  return {*kind_of_operation(table.operation), points};
}

void predict_links(const std::vector<ReplayedTable>& tables, std::vector<ValidationPoint>& points) {
  for (const ReplayedTable& table : tables) {
    for (const ReplayedRow& row : table.rows) points.push_back(point_of(table, row));
  }
}

void predict_sizes(const std::vector<ReplayedTable>& tables, std::vector<ValidationPoint>& points) {
  constexpr std::size_t kFewestRows = 3;
  for (const ReplayedTable& table : tables) {
    if (table.rows.size() < kFewestRows) continue;
    std::vector<CollectivePoint> fitted;
    for (std::size_t i = 0; i < table.rows.size(); i += 2) fitted.push_back(fit_point(table, table.rows[i]));
    const CollectiveFit fit = fit_of(table, fitted);
    for (std::size_t i = 1; i < table.rows.size(); i += 2) points.push_back(predicted(fit, table, table.rows[i]));
  }
}

// Returns whether two tables of one file differ only in the number of devices.
bool differ_in_devices(const ReplayedTable& a, const ReplayedTable& b) {
  return a.file == b.file && a.operation == b.operation && a.dtype == b.dtype && a.nodes == 1 && b.nodes == 1 &&
         a.node == b.node;
}

// Predicts a table from tables with fewer devices: at least two of them, unless there is only one.
void predict_ranks(const std::vector<ReplayedTable>& tables, std::vector<ValidationPoint>& points) {
  for (const ReplayedTable& table : tables) {
    std::set<int> fewer, all;
    std::vector<CollectivePoint> fitted;
    for (const ReplayedTable& other : tables) {
      if (!differ_in_devices(table, other)) continue;
      all.insert(other.devices);
      if (other.devices >= table.devices) continue;
      fewer.insert(other.devices);
      for (const ReplayedRow& row : other.rows) fitted.push_back(fit_point(other, row));
    }
    if (fewer.empty() || (fewer.size() == 1 && all.size() > 2)) continue;
    const CollectiveFit fit = fit_of(table, fitted);
    for (const ReplayedRow& row : table.rows) points.push_back(predicted(fit, table, row));
  }
}

// Fits tables of one node, of the same element type if there are any.
void predict_nodes(const std::vector<ReplayedTable>& tables, std::vector<ValidationPoint>& points) {
  for (const ReplayedTable& table : tables) {
    if (table.nodes == 1) continue;
    std::vector<CollectivePoint> same_type, any_type;
    for (const ReplayedTable& other : tables) {
      const bool is_node = other.nodes == 1 && other.node == table.node && other.operation == table.operation &&
                           other.devices * table.nodes == table.devices && other.apart.empty();
      if (!is_node) continue;
      for (const ReplayedRow& row : other.rows) {
        any_type.push_back(fit_point(other, row));
        if (other.dtype == table.dtype) same_type.push_back(fit_point(other, row));
      }
    }
    if (any_type.empty()) continue;
    const CollectiveFit fit = fit_of(table, same_type.empty() ? any_type : same_type);
    for (const ReplayedRow& row : table.rows) points.push_back(predicted(fit, table, row));
  }
}

}  // namespace

std::vector<std::pair<std::string, Protocol>> protocol_words() {
  return {{"sizes", Protocol::sizes},
          {"ranks", Protocol::ranks},
          {"nodes", Protocol::nodes},
          {"links", Protocol::links},
          {"first-row", Protocol::first_row}};
}

std::string name_of(Protocol protocol) {
  for (const auto& [name, known] : protocol_words()) {
    if (known == protocol) return name;
  }
  TANDEM_UNREACHABLE("a Protocol outside its enumerators");
}

std::vector<ValidationPoint> predict(Protocol protocol, const std::vector<ReplayedTable>& tables) {
  std::vector<ValidationPoint> points;
  switch (protocol) {
    case Protocol::links:
      predict_links(tables, points);
      return points;
    case Protocol::sizes:
      predict_sizes(tables, points);
      return points;
    case Protocol::ranks:
      predict_ranks(tables, points);
      return points;
    case Protocol::nodes:
      predict_nodes(tables, points);
      return points;
    case Protocol::first_row:
      return points;
  }
  TANDEM_UNREACHABLE("a Protocol outside its enumerators");
}

}  // namespace tandem::validation
