#include "scenarios/validation/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scenarios/calibration/slower_devices.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/fitting/device_fit.h"
#include "scenarios/run/runner.h"
#include "scenarios/validation/rules.h"
#include "scenarios/validation/server_training.h"

namespace tandem::validation {
namespace {

constexpr int kSteps = 2;  // the first is warm-up; simulated steps are equal
constexpr int kWarmupSteps = 1;

Report simulate(const TrainingTable& table, const TrainingTable::Row& row, std::shared_ptr<const Topology> topology) {
  Scenario scenario = scenario_of(table, row);
  scenario.topology = std::move(topology);
  scenario.steps = kSteps;
  scenario.warmup_steps = kWarmupSteps;
  const RunOptions options{.measures_scaling = false, .merges_workers = true, .only_report = true};
  return run_scenario(scenario, options).report;
}

const TrainingTable::Row* row_of_one_device(const TrainingTable& table) {
  const auto one = std::find_if(table.rows.begin(), table.rows.end(),
                                [](const TrainingTable::Row& row) { return row.devices == 1; });
  return one == table.rows.end() ? nullptr : &*one;
}

std::int64_t predicted_peak(const TrainingTable::Row& row, const MemoryNeed& need) {
  const bool counts_blocks = row.peak && row.peak->is_reserved;
  return need.total() + (counts_blocks ? need.cached : 0);
}

TrainingPoint training_point(const std::string& file, const TrainingTable& table, const TrainingTable::Row& row) {
  TrainingPoint point;
  point.file = file;
  point.source = table.source.empty() ? file : table.source;
  point.model = model_of(row.workload.value_or(table.workload));
  point.run = row.name;
  point.strategy = row.strategy ? row.strategy->name : table.strategy;
  point.compared_as = compared_as(point.strategy);
  point.devices = row.devices;
  point.nodes = row.machine.nodes;
  point.unit = table.unit;
  point.measured = row.throughput;
  point.peak = row.peak;
  point.apart = training_apart_by(row.machine);
  // Rows with workloads of their own differ in more than the number of devices.
  if (const auto* one = row_of_one_device(table); one != nullptr && row.devices > 1 && !row.workload) {
    point.linear = one->throughput * row.devices;
  }
  return point;
}

// Returns the row to which the device is fitted: that of one device or, if rows divide the model and none is of one
// device, the first one.
const TrainingTable::Row* row_to_fit(const TrainingTable& table) {
  if (const TrainingTable::Row* one = row_of_one_device(table)) return one;
  return table.rows.front().strategy ? &table.rows.front() : nullptr;
}

// Returns the factor by which the device's work takes longer than its figures say.
double slowness_in(const std::string& file, const TrainingTable& table, const TrainingTable::Row& row) {
  if (row.devices == 1) {
    const WorkloadSettings workload = row.workload.value_or(table.workload);
    return fit_device(*row.machine.topology,
                      {{.workload = workload, .per_second = row.throughput, .source = file, .place = row.place}})
        .factor;
  }
  const auto simulated = [&](const Topology& topology) {
    return simulate(table, row, std::make_shared<const Topology>(topology)).throughput();
  };
  return slowness_of_devices(*row.machine.topology, simulated, row.throughput, file, row.place);
}

void replay_table(const std::string& file, const TrainingTable& table, bool fits_first_row, TrainingReplay& replay) {
  const TrainingTable::Row* const first = row_to_fit(table);
  if (fits_first_row && (first == nullptr || table.rows.size() < 2)) {
    replay.left_out.push_back({file, first == nullptr ? "has no row of one device" : "has only one row"});
    return;
  }
  const double slowness = fits_first_row ? slowness_in(file, table, *first) : 1;
  std::map<int, std::shared_ptr<const Topology>> fitted_by_nodes;
  for (const TrainingTable::Row& row : table.rows) {
    if (fits_first_row && &row == first) continue;
    TrainingPoint point = training_point(file, table, row);
    point.basis = !fits_first_row       ? "device figures"
                  : first->devices == 1 ? "fitted on one device"
                                        : "fitted on the first row";
    std::shared_ptr<const Topology> topology = row.machine.topology;
    if (fits_first_row) {
      std::shared_ptr<const Topology>& fit = fitted_by_nodes[row.machine.nodes];
      if (!fit) fit = std::make_shared<const Topology>(with_slower_devices(*topology, slowness, "its first row"));
      topology = fit;
    }
    try {
      const Report report = simulate(table, row, topology);
      point.predicted = report.throughput();
      if (report.memory) point.predicted_peak = predicted_peak(row, *report.memory);
      replay.points.push_back(std::move(point));
    } catch (const MemoryError& error) {  // the others can be predicted
      replay.left_out.push_back({file, fmt::format("the row in line {} {}", row.place.line, error.what())});
    }
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
