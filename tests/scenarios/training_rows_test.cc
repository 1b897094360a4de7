// What predictions of training on one GPU are worth: published throughputs beside those from device figures alone, with
// constants that were fitted to the convolutional networks among them (engine/sim/costs/kernel_constants.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/sim/costs/kernel_constants.h"
#include "engine/sim/costs/kernel_errors.h"
#include "scenarios/fitting/device_limits.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

struct Row {
  std::string source, workload, batch, machine;
  double published = 0;
};

std::vector<Row> published_rows() {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/scenarios/training_rows.csv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ';');) row.push_back(field);
    rows.push_back({.source = row.at(0),
                    .workload = row.at(1),
                    .batch = row.at(2),
                    .machine = row.at(3),
                    .published = std::stod(row.at(4))});
  }
  return rows;
}

Scenario scenario_of(const Row& row) {
  return read_scenario("workload: {kind: layers, " + row.workload + ", batch: " + row.batch +
                       "}\nengine: {name: sim}\ntopology: " + row.machine +
                       "\ndevices: {type: gpu, per_worker: 1, workers: 1}\n" + "steps: 3\nwarmup_steps: 1\n");
}

double predicted(const Row& row) {
  return run_scenario(scenario_of(row)).report.throughput();
}

// The sorted errors of groups, given the ratios of their rows: each group counts once.
std::vector<double> errors_of(const std::map<std::string, std::vector<double>>& groups) {
  std::vector<double> errors;
  for (const auto& [name, logarithms] : groups) {
    double sum = 0;
    for (const double logarithm : logarithms) sum += logarithm;
    errors.push_back(std::abs(std::exp(sum / static_cast<double>(logarithms.size())) - 1));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted.at(static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1)));
}

// GPUs of other kinds than those that the model was made with.
bool is_other(const Row& row) {
  for (const char* machine : {"dgx1-v100", "dgx2", "a100", "pcie-8gpu", "h100", "hgx-h200"}) {
    if (row.machine.find(machine) != std::string::npos) return false;
  }
  return true;
}

int percent(double value) {
  return static_cast<int>(std::lround(100 * value));
}

// Groups are the rows of one table, model, machine and precision, whatever their batch.
TEST(TrainingRows, OneGpuFromDeviceFiguresIsWithinTheStatedErrors) {
  std::map<std::string, std::vector<double>> known, others, convolutional, transformers;
  for (const Row& row : published_rows()) {
    const std::string group = row.source + ";" + row.workload + ";" + row.machine;
    const double logarithm = std::log(predicted(row) / row.published);
    (is_other(row) ? others : known)[group].push_back(logarithm);
    if (is_other(row)) continue;
    (row.workload.find("res") != std::string::npos ? convolutional : transformers)[group].push_back(logarithm);
  }
  const std::vector<double> errors = errors_of(known);
  EXPECT_EQ(errors.size(), sim::kernel_constants::kPublishedSteps);
  EXPECT_EQ(percent(quantile(errors, 0.5)), sim::kernel_constants::kMedianErrorPercent);
  EXPECT_EQ(percent(quantile(errors, 0.9)), sim::kernel_constants::kNineInTenPercent);
  EXPECT_EQ(percent(quantile(errors_of(convolutional), 0.5)), 4);  // fitted to
  EXPECT_EQ(percent(quantile(errors_of(transformers), 0.5)), 10);  // only the width of their loads was
  const std::vector<double> of_others = errors_of(others);
  EXPECT_EQ(of_others.size(), 48u);
  EXPECT_EQ(percent(quantile(of_others, 0.5)), 12);
  EXPECT_EQ(percent(quantile(of_others, 0.9)), 28);
}

// Returns the table of kernel_errors(), computed from the published rows.
std::map<std::string, sim::KernelErrors> errors_by_gpu() {
  std::map<std::string, std::map<std::string, std::vector<double>>> groups;
  for (const Row& row : published_rows()) {
    const RunResult result = run_scenario(scenario_of(row));
    const Topology& topology = *result.topology;
    const std::string& gpu = topology.node(topology.nodes_of(0, NodeKind::gpu).front()).device->name;
    groups[gpu][row.source + ";" + row.workload + ";" + row.machine].push_back(
        std::log(result.report.throughput() / row.published));
  }
  std::map<std::string, sim::KernelErrors> table;
  for (const auto& [gpu, of_gpu] : groups) {
    const std::vector<double> errors = errors_of(of_gpu);
    const double most = errors.size() < 10 ? errors.back() : quantile(errors, 0.9);
    table[gpu] = {.gpu = gpu,
                  .steps = static_cast<int>(errors.size()),
                  .median = percent(quantile(errors, 0.5)),
                  .nine_in_ten = percent(most)};
  }
  return table;
}

TEST(TrainingRows, EachGpuHasItsOwnErrors) {
  const auto computed = errors_by_gpu();
  std::string rows;
  for (const auto& [gpu, errors] : computed) {
    rows += fmt::format("    {{\"{}\", {}, {}, {}}},\n", gpu, errors.steps, errors.median, errors.nine_in_ten);
  }
  std::string table;
  for (const sim::KernelErrors& errors : sim::kernel_errors()) {
    table += fmt::format("    {{\"{}\", {}, {}, {}}},\n", errors.gpu, errors.steps, errors.median, errors.nine_in_ten);
  }
  EXPECT_EQ(table, rows);
}

// A false alarm would call a published measurement wrong.
TEST(TrainingRows, NoneContradictsThePeaksOfItsDevice) {
  for (const Row& row : published_rows()) {
    const Scenario scenario = scenario_of(row);
    const RunResult result = run_scenario(scenario);
    const auto work = calibration::least_work_of(scenario.workload, result.timeline, 2);
    const Topology& topology = *result.topology;
    const DeviceModel& device = *topology.node(topology.nodes_of(0, NodeKind::gpu).front()).device;
    EXPECT_EQ(calibration::contradiction_of(work, row.published, device), std::nullopt)
        << row.source << " " << row.workload << " " << row.machine;
  }
}

}  // namespace
}  // namespace tandem
