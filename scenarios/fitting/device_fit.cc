#include "scenarios/fitting/device_fit.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "engine/engine_info.h"
#include "reports/base/text_table.h"
#include "scenarios/calibration/slower_devices.h"
#include "scenarios/fitting/device_limits.h"
#include "scenarios/reading/workload_reader.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/portable_math.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr int kSteps = 3;

// One device training in the model's world. With `all_passes` of a step, the timeline has those that repeat others.
RunResult train_one_device(const Topology& topology, DeviceType type, const WorkloadSettings& workload,
                           bool all_passes) {
  Scenario scenario;
  scenario.name = "one device";
  scenario.workload = workload;
  scenario.engine.name = model_engine().name;
  scenario.engine.values = ValueMode::none;
  scenario.topology = std::make_shared<const Topology>(topology);
  scenario.devices.type = type;
  scenario.devices.workers = 1;
  scenario.steps = kSteps;
  scenario.warmup_steps = 1;
  return run_scenario(scenario, {.measures_scaling = false, .only_report = !all_passes});
}

double simulated_per_second(const Topology& topology, DeviceType type, const WorkloadSettings& workload) {
  return train_one_device(topology, type, workload, false).report.throughput();
}

// The work of a step over parts of a batch grows by the same amount with each of them, so that two runs with few parts
// tell it.
calibration::LeastWork work_of_example(const Topology& topology, DeviceType type, WorkloadSettings workload) {
  constexpr int kFewPasses = 2;
  auto* const layers = std::get_if<LayersSettings>(&workload.kind);
  const int passes = layers == nullptr ? 1 : layers->gradient_accumulation_steps;
  const auto work = [&] {
    const Timeline timeline = train_one_device(topology, type, workload, true).timeline;
    return calibration::least_work_of(workload, timeline, kSteps - 1);
  };
  if (passes <= kFewPasses || workload.batch % passes != 0) return work();
  const int of_pass = workload.batch / passes;
  layers->gradient_accumulation_steps = 1;
  workload.batch = of_pass;
  const calibration::LeastWork one = work();
  layers->gradient_accumulation_steps = kFewPasses;
  workload.batch = kFewPasses * of_pass;
  calibration::LeastWork all = work();
  const auto continued = [&](double of_one, double of_two) {
    return (of_one + (kFewPasses * of_two - of_one) * (passes - 1)) / passes;
  };
  all.flops = continued(one.flops, all.flops);
  all.bytes = continued(one.bytes, all.bytes);
  return all;
}

// Returns the device that train_one_device() trains on.
const DeviceModel& fitted_device(const Topology& topology, DeviceType type) {
  return *topology.node(topology.nodes_of(0, type == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu).front()).device;
}

// Says what makes the fit doubtful: figures that are far off, and measurements that no one factor fits.
void add_notes(DeviceFit& fit) {
  constexpr double kFarOff = 3;
  constexpr double kMostError = 0.1;
  if (fit.factor > kFarOff || fit.factor < 1 / kFarOff) {
    fit.notes.push_back(fmt::format(
        "devices take {:.4g} times as long as their figures said: check that the workload, its batch and its dtype are "
        "those of the measurement, and that it was made on one device of this kind",
        fit.factor));
  }
  for (const DeviceFit::Throughput& each : fit.throughputs) {
    const double error = each.after / each.measured - 1;
    if (std::abs(error) <= kMostError) continue;
    fit.notes.push_back(fmt::format("{}: measured {}, but {} with the factor that fits all throughputs best ({})",
                                    each.source, rate_text(each.measured, "per s"), rate_text(each.after, "per s"),
                                    error_text(error)));
  }
}

MeasuredThroughput read_entry(const YamlReader& map, const std::filesystem::path& path) {
  MeasuredThroughput entry;
  SharedParts parts;
  entry.workload = read_workload(map.required("workload"), path.parent_path(), parts);
  entry.per_second = map.required("per_second").number_within(kRates, 1);
  entry.source = path.filename().string();
  entry.file = path.string();
  entry.place = {.line = map.line(), .column = map.column()};
  return entry;
}

}  // namespace

// Times are nearly proportional to the factor, so dividing by the remaining error converges in a few runs.
double slowness_of_devices(const Topology& topology, const SimulatedThroughput& simulated, double per_second,
                           const std::string& file, const FilePlace& place) {
  constexpr int kMostRuns = 30;
  constexpr double kEnough = 1e-6;
  double factor = 1;
  for (int run = 0; run < kMostRuns; ++run) {
    const double missing = simulated(with_slower_devices(topology, factor, "")) / per_second;
    if (std::abs(missing - 1) < kEnough) return factor;
    factor *= missing;
  }
  throw InputError(
      {problem_at(file, place,
                  fmt::format("no speed of the device gives {}, because work that does not depend on it takes longer",
                              rate_text(per_second, "per s")))});
}

std::vector<MeasuredThroughput> read_throughputs(const std::filesystem::path& path) {
  const YamlDocument document = YamlDocument::load(path);
  Diagnostics problems;
  const YamlReader root(document, problems);
  root.required("schema_version").integer(1, 1, 1);
  std::vector<MeasuredThroughput> measured;
  for (const YamlReader& entry : root.required("throughput").list()) measured.push_back(read_entry(entry, path));
  root.finish();
  problems.throw_if_any();
  return measured;
}

DeviceFit fit_device(const Topology& topology, const std::vector<MeasuredThroughput>& measured) {
  TANDEM_REQUIRE(!measured.empty(), "a fit of a device without a measured throughput");
  const DeviceType type = fitted_type(topology);
  const DeviceModel& device = fitted_device(topology, type);
  DeviceFit fit(topology);
  double logarithms = 0;
  std::string source = "fitted to";
  for (const MeasuredThroughput& each : measured) {
    fit.throughputs.push_back({.source = each.source,
                               .measured = each.per_second,
                               .before = simulated_per_second(topology, type, each.workload)});
    const calibration::LeastWork work = work_of_example(topology, type, each.workload);
    if (const auto found = calibration::contradiction_of(work, each.per_second, device)) {
      fit.contradictions.push_back(fmt::format("{}: {} {}", each.source, rate_text(each.per_second, "per s"), *found));
    }
    const auto simulated = [&](const Topology& slowed) { return simulated_per_second(slowed, type, each.workload); };
    logarithms += portable::log(slowness_of_devices(topology, simulated, each.per_second,
                                                    each.file.empty() ? each.source : each.file, each.place));
    source += fmt::format(" {:.6g}/s ({})", each.per_second, each.source);
  }
  fit.factor = portable::exp(logarithms / static_cast<double>(measured.size()));
  fit.topology = with_slower_devices(topology, fit.factor, source);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    fit.throughputs[i].after = simulated_per_second(fit.topology, type, measured[i].workload);
  }
  add_notes(fit);
  return fit;
}

}  // namespace tandem
