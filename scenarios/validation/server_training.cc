#include "scenarios/validation/server_training.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/engine_info.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/run/runner.h"
#include "scenarios/validation/rules.h"

namespace tandem::validation {
namespace {

constexpr int kAsynchronousSteps = 12;
constexpr int kAsynchronousWarmup = 4;
constexpr int kFitRounds = 12;
constexpr double kSaturated = 0.9;  // of the throughput of linear scaling

// The factors by which work on the workers' GPUs and on the servers' CPUs takes longer than their figures say.
struct Slowness {
  double worker = 1, server = 1;
};

void multiply(Figure& figure, double factor) {
  figure.value *= factor;
}

DeviceModel slowed(DeviceModel model, double factor) {
  for (auto& [dtype, peak] : model.peak_flops_per_s) multiply(peak, 1 / factor);
  multiply(model.memory_bandwidth_bytes_per_s, 1 / factor);
  multiply(model.boost_clock_hz, 1 / factor);
  multiply(model.memory_latency_s, factor);
  multiply(model.op_overhead_s, factor);
  return model;
}

std::shared_ptr<const Topology> with_slowness(const Topology& topology, const Slowness& slowness) {
  auto result = std::make_shared<Topology>(topology);
  result->replace_devices([&](NodeKind kind, const DeviceModel& model) {
    return std::make_shared<const DeviceModel>(
        slowed(model, kind == NodeKind::gpu ? slowness.worker : slowness.server));
  });
  return result;
}

class ServerTable {
 public:
  explicit ServerTable(const TrainingTable& table) : table_(table) {
    for (const TrainingTable::Row& row : table.rows) {
      if (row.devices == 1) one_ = &row;
    }
  }

  const TrainingTable::Row* one() const { return one_; }
  const TrainingTable::Row& last() const { return table_.rows.back(); }
  bool is_saturated() const {
    return one_ != nullptr && last().devices > 1 && last().throughput < kSaturated * last().devices * one_->throughput;
  }

  double simulated(const TrainingTable::Row& row, const Slowness& slowness) const {
    Scenario scenario;
    scenario.name = table_.strategy;
    scenario.workload = table_.workload;
    scenario.workload.batch *= row.devices;
    scenario.strategy.name = table_.strategy;
    scenario.engine = {.name = std::string(model_engine().name), .values = {}, .collectives = {}};
    scenario.topology = with_slowness(*row.machine.topology, slowness);
    scenario.devices.type = DeviceType::gpu;
    const bool is_local = row.devices < table_.devices_per_worker;
    scenario.strategy.updates = table_.updates;
    scenario.devices.per_worker = std::min(row.devices, table_.devices_per_worker);
    scenario.devices.workers = workers_of(row);
    scenario.devices.ps = is_local ? 0 : table_.parameter_servers;
    scenario.steps = kAsynchronousSteps;
    scenario.warmup_steps = kAsynchronousWarmup;
    return run_scenario(scenario, {.measures_scaling = false, .only_report = true}).report.throughput();
  }

  // Each corrects a slowness by the remaining error, because times are nearly proportional to it.
  void fit_worker(Slowness& slowness) const { slowness.worker *= simulated(*one_, slowness) / one_->throughput; }
  void fit_server(Slowness& slowness) const { slowness.server *= simulated(last(), slowness) / last().throughput; }

  TrainingPoint point(const std::string& file, const TrainingTable::Row& row) const {
    const auto* layers = std::get_if<LayersSettings>(&table_.workload.kind);
    TrainingPoint point;
    point.file = file;
    point.source = table_.source.empty() ? file : table_.source;
    point.family = row.machine.family();
    point.model = layers == nullptr ? "mlp" : layers->model.name;
    point.strategy = table_.strategy;
    point.compared_as = compared_as(point.strategy);
    point.devices = row.devices;
    point.nodes = workers_of(row);
    point.unit = table_.unit;
    point.measured = row.throughput;
    point.apart = training_apart_by(row.machine);
    if (one_ != nullptr && row.devices > 1) point.linear = one_->throughput * row.devices;
    return point;
  }

 private:
  int workers_of(const TrainingTable::Row& row) const { return std::max(1, row.devices / table_.devices_per_worker); }

  const TrainingTable& table_;
  const TrainingTable::Row* one_ = nullptr;
};

// Returns the server's slowness, fitted to the first saturated table; 1 if none is saturated.
double server_slowness(const std::vector<TrainingTable>& tables, const TrainingTable*& fitted) {
  for (const TrainingTable& each : tables) {
    const ServerTable table(each);
    if (!table.is_saturated()) continue;
    Slowness slowness;
    for (int round = 0; round < kFitRounds; ++round) {
      table.fit_server(slowness);
      table.fit_worker(slowness);
    }
    fitted = &each;
    return slowness.server;
  }
  return 1;
}

}  // namespace

void replay_parameter_servers(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row,
                              TrainingReplay& replay) {
  const TrainingTable* fitted = nullptr;
  const double server = fits_first_row ? server_slowness(tables, fitted) : 1;
  for (const TrainingTable& each : tables) {
    const ServerTable table(each);
    if (fits_first_row && table.one() == nullptr) {
      replay.left_out.push_back({file, "has no row of one device"});
      continue;
    }
    Slowness slowness{.worker = 1, .server = server};
    for (int round = 0; fits_first_row && round < kFitRounds; ++round) table.fit_worker(slowness);
    for (const TrainingTable::Row& row : each.rows) {
      if (fits_first_row && (&row == table.one() || (&each == fitted && &row == &table.last()))) continue;
      TrainingPoint point = table.point(file, row);
      point.basis = !fits_first_row ? "device figures" : fitted ? "fitted worker and server" : "fitted on one device";
      point.predicted = table.simulated(row, slowness);
      replay.points.push_back(std::move(point));
    }
  }
}

}  // namespace tandem::validation
