// The groups of published measurements for which errors of predictions are known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/errors/error_interval.h"

namespace tandem {

// What the figures behind a prediction rest on.
enum class FigureBasis : std::uint8_t {
  stated,      // a catalog, a datasheet, an assumption: nothing is fitted
  fitted,      // the device was measured or fitted to a measurement, the links were not all
  calibrated,  // of collectives: measured at other sizes; else every figure was measured on the machine
};
std::string_view name_of(FigureBasis basis);  // "nothing fitted", "device fitted", "calibrated"
std::span<const FigureBasis> figure_bases();

enum class PredictionGroup : std::uint8_t {
  // throughputs of training
  one_device,
  one_node,
  several_nodes,
  several_nodes_mesh,
  fully_sharded,
  parameter_server,
  central_storage,
  // the most memory of a device
  device_memory,
  // times of collectives, by band of sizes (size_bands.h)
  collectives_nvlink,          // in one NVLink domain, or over xGMI
  collectives_pcie,            // in one machine whose devices have no such links
  collectives_rdma,            // over InfiniBand or RoCE
  collectives_other_networks,  // EFA, TCPX, TCPXO, Slingshot, sockets, and those that nobody names
};

std::span<const PredictionGroup> prediction_groups();  // all of them
bool is_of_collectives(PredictionGroup group);

// A group, of collectives with a band of sizes.
struct PredictionRows {
  PredictionGroup group = PredictionGroup::one_device;
  std::optional<std::size_t> sizes{};  // of kSizeBands

  auto operator<=>(const PredictionRows&) const = default;
};
// Returns all groups, those of collectives once for each band of sizes.
std::vector<PredictionRows> all_prediction_rows();

// Returns the name in tables: "one node", "collectives over InfiniBand or RoCE, <= 32 KiB".
std::string name_of(const PredictionRows& rows);

// Returns the group of a training run (PredictionKind::strategy), or nothing if no such published run is known.
std::optional<PredictionGroup> prediction_group(std::string_view strategy, int devices, int nodes);

// The errors of predictions of a group.
struct GroupErrors {
  PredictionRows of{};
  FigureBasis figures = FigureBasis::stated;
  int rows = 0;             // where a device was fitted, without those that it was fitted to
  int sites = 1;            // that measured them
  bool is_widened = false;  // because few sites have rows of the group, the intervals are at least those of all groups
  std::vector<ErrorInterval> intervals{};  // by level
};

}  // namespace tandem
