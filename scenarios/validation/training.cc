#include "scenarios/validation/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/engine_info.h"
#include "scenarios/calibration/device_fit.h"
#include "scenarios/runner.h"
#include "scenarios/validation/server_training.h"

namespace tandem::validation {
namespace {

constexpr int kSteps = 2;  // the first is warm-up; simulated steps are equal
constexpr int kWarmupSteps = 1;

std::string model_of(const TrainingTable& table) {
  const auto* layers = std::get_if<LayersSettings>(&table.workload.kind);
  return layers == nullptr ? "mlp" : layers->model.name;
}

double simulate(const TrainingTable& table, const TrainingTable::Row& row, std::shared_ptr<const Topology> topology) {
  Scenario scenario;
  scenario.name = model_of(table);
  scenario.workload = table.workload;
  scenario.workload.batch *= row.devices;
  scenario.strategy.name = table.strategy;
  scenario.engine = {.name = std::string(model_engine().name), .values = {}, .collectives = {}};
  scenario.topology = std::move(topology);
  scenario.devices.type = DeviceType::gpu;
  scenario.devices.per_worker = row.devices / row.machine.nodes;
  scenario.devices.workers = row.machine.nodes;
  scenario.steps = kSteps;
  scenario.warmup_steps = kWarmupSteps;
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options).report.throughput();
}

const TrainingTable::Row* row_of_one_device(const TrainingTable& table) {
  const auto one = std::find_if(table.rows.begin(), table.rows.end(),
                                [](const TrainingTable::Row& row) { return row.devices == 1; });
  return one == table.rows.end() ? nullptr : &*one;
}

TrainingPoint training_point(const std::string& file, const TrainingTable& table, const TrainingTable::Row& row) {
  TrainingPoint point;
  point.file = file;
  point.model = model_of(table);
  point.strategy = table.strategy;
  point.devices = row.devices;
  point.nodes = row.machine.nodes;
  point.unit = table.unit;
  point.measured = row.throughput;
  if (const auto* one = row_of_one_device(table); one != nullptr && row.devices > 1) {
    point.linear = one->throughput * row.devices;
  }
  return point;
}

std::shared_ptr<const Topology> fitted(const TrainingTable& table, const TrainingTable::Row& one,
                                       const Topology& topology) {
  const MeasuredThroughput measured{
      .workload = table.workload, .per_second = one.throughput, .source = "its first row"};
  return std::make_shared<const Topology>(fit_device(topology, {measured}).topology);
}

void replay_table(const std::string& file, const TrainingTable& table, bool fits_first_row, TrainingReplay& replay) {
  const TrainingTable::Row* one = row_of_one_device(table);
  if (fits_first_row && (one == nullptr || table.rows.size() < 2)) {
    replay.left_out.push_back({file, one == nullptr ? "has no row of one device" : "has only one row"});
    return;
  }
  std::map<int, std::shared_ptr<const Topology>> fitted_by_nodes;
  for (const TrainingTable::Row& row : table.rows) {
    if (fits_first_row && &row == one) continue;
    TrainingPoint point = training_point(file, table, row);
    point.basis = fits_first_row ? "fitted on one device" : "device figures";
    std::shared_ptr<const Topology> topology = row.machine.topology;
    if (fits_first_row) {
      std::shared_ptr<const Topology>& fit = fitted_by_nodes[row.machine.nodes];
      if (!fit) fit = fitted(table, *one, *topology);
      topology = fit;
    }
    point.predicted = simulate(table, row, topology);
    replay.points.push_back(std::move(point));
  }
}

}  // namespace

TrainingReplay replay_training(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row) {
  TrainingReplay replay;
  std::vector<TrainingTable> with_servers;
  for (const TrainingTable& table : tables) {
    if (!table.lacks.empty()) {
      replay.left_out.push_back({file, fmt::format("does not state {}", table.lacks)});
    } else if (table.parameter_servers > 0) {
      with_servers.push_back(table);
    } else {
      replay_table(file, table, fits_first_row, replay);
    }
  }
  replay_parameter_servers(file, with_servers, fits_first_row, replay);
  return replay;
}

}  // namespace tandem::validation
