#include "scenarios/validation/training.h"

#include <fmt/format.h>

#include <algorithm>

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
constexpr int kMostWhole = 256;  // devices; larger jobs are simulated quickly (RunOptions::is_quick)

Report simulate(const TrainingTable& table, const TrainingTable::Row& row, std::shared_ptr<const Topology> topology) {
  Scenario scenario = scenario_of(table, row);
  scenario.topology = std::move(topology);
  scenario.steps = kSteps;
  scenario.warmup_steps = kWarmupSteps;
  const RunOptions options{
      .measures_scaling = false, .merges_workers = true, .is_quick = row.devices > kMostWhole, .only_report = true};
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
  point.family = row.machine.family();
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

std::string too_little_memory(const TrainingTable::Row& row, const MemoryError& error) {
  return fmt::format("the row in line {} {}", row.place.line, error.what());
}

// A row to which the devices are fitted, and by which factor they are slower then.
struct FittedRow {
  const TrainingTable::Row* row = nullptr;
  const TrainingTable::Row* first = nullptr;  // that was tried
  double slowness = 1;

  bool has_used(const TrainingTable::Row& other) const { return &other >= first && &other <= row; }
};

// Rows that divide the model and do not fit into memory, although they ran, are left out; the next one is fitted then.
// Leaves the table out where no row can be fitted, or no other one is left.
std::optional<FittedRow> fit_row(const std::string& file, const TrainingTable& table, TrainingReplay& replay) {
  const TrainingTable::Row* const first = row_to_fit(table);
  if (first == nullptr || table.rows.size() < 2) {
    replay.left_out.push_back({file, first == nullptr ? "has no row of one device" : "has only one row"});
    return std::nullopt;
  }
  const TrainingTable::Row* const last = &table.rows.back();
  for (const TrainingTable::Row* row = first; row <= last; ++row) {
    if (row == last && row != first) {
      replay.left_out.push_back({file, "has one row that may fit into memory, and none to predict"});
      break;
    }
    try {
      return FittedRow{.row = row, .first = first, .slowness = slowness_in(file, table, *row)};
    } catch (const MemoryError& error) {
      replay.left_out.push_back({file, too_little_memory(*row, error)});
      if (!row->strategy) break;
    }
  }
  return std::nullopt;
}

std::string basis_of(const std::optional<FittedRow>& fitted) {
  if (!fitted) return "device figures";
  return fitted->row->devices == 1 ? "fitted on one device" : "fitted on the first row";
}

void replay_table(const std::string& file, const TrainingTable& table, bool fits_first_row, TrainingReplay& replay) {
  const std::optional<FittedRow> fitted = fits_first_row ? fit_row(file, table, replay) : std::nullopt;
  if (fits_first_row && !fitted) return;
  for (const TrainingTable::Row& row : table.rows) {
    if (fitted && fitted->has_used(row)) continue;
    TrainingPoint point = training_point(file, table, row);
    point.basis = basis_of(fitted);
    std::shared_ptr<const Topology> topology = row.machine.topology;
    if (fitted)
      topology = std::make_shared<const Topology>(with_slower_devices(*topology, fitted->slowness, "its first row"));
    try {
      const Report report = simulate(table, row, topology);
      point.predicted = report.throughput();
      if (report.memory) point.predicted_peak = predicted_peak(row, *report.memory);
      replay.points.push_back(std::move(point));
    } catch (const MemoryError& error) {  // the others can be predicted
      replay.left_out.push_back({file, too_little_memory(row, error)});
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
