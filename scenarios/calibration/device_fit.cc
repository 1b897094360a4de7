#include "scenarios/calibration/device_fit.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "engine/engine_info.h"
#include "reports/text_table.h"
#include "scenarios/runner.h"
#include "scenarios/shared_parts.h"
#include "scenarios/workload_reader.h"
#include "topologies/base/portable_math.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

DeviceType fitted_type(const Topology& topology) {
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    if (topology.node(i).kind == NodeKind::gpu) return DeviceType::gpu;
  }
  return DeviceType::cpu;
}

void scale(Figure& figure, double factor, const std::string& source) {
  if (figure.value <= 0) return;
  figure = {.value = figure.value * factor, .provenance = Provenance::measured, .source = source, .date = ""};
}

DeviceModel slower(DeviceModel model, double factor, const std::string& source) {
  for (auto& [dtype, peak] : model.peak_flops_per_s) scale(peak, 1 / factor, source);
  scale(model.memory_bandwidth_bytes_per_s, 1 / factor, source);
  scale(model.boost_clock_hz, 1 / factor, source);
  scale(model.memory_latency_s, factor, source);
  scale(model.op_overhead_s, factor, source);
  for (DeviceRates& rates : model.rates) {
    rates.op_overhead_s *= factor;
    for (GemmSample& sample : rates.gemm) sample.flops_per_s /= factor;
    for (RateSample& sample : rates.memory) sample.bytes_per_s /= factor;
    for (RateSample& sample : rates.copy) sample.bytes_per_s /= factor;
    for (auto& [name, samples] : rates.kernels) {
      for (RateSample& sample : samples) sample.bytes_per_s /= factor;
    }
  }
  return model;
}

// One device training in the model's world.
double simulated_per_second(const Topology& topology, DeviceType type, const WorkloadSettings& workload) {
  Scenario scenario;
  scenario.name = "one device";
  scenario.workload = workload;
  scenario.engine.name = model_engine().name;
  scenario.engine.values = ValueMode::none;
  scenario.topology = std::make_shared<const Topology>(topology);
  scenario.devices.type = type;
  scenario.devices.workers = 1;
  scenario.steps = 3;
  scenario.warmup_steps = 1;
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options).report.throughput();
}

MeasuredThroughput read_entry(const YamlReader& map, const std::filesystem::path& path) {
  MeasuredThroughput entry;
  SharedParts parts;
  entry.workload = read_workload(map.required("workload"), path.parent_path(), parts);
  entry.per_second = map.required("per_second").number({.above = 0, .otherwise = 1});
  entry.source = path.filename().string();
  return entry;
}

}  // namespace

Topology with_slower_devices(const Topology& topology, double factor, const std::string& source) {
  Topology result = topology;
  const NodeKind kind = fitted_type(topology) == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu;
  result.replace_devices([&](NodeKind of, const DeviceModel& model) {
    return of == kind ? std::make_shared<const DeviceModel>(slower(model, factor, source)) : nullptr;
  });
  return result;
}

// Times are nearly proportional to the factor, so dividing by the remaining error converges in a few runs.
double slowness_of_devices(const Topology& topology, const SimulatedThroughput& simulated, double per_second,
                           const std::string& source) {
  constexpr int kMostRuns = 30;
  constexpr double kEnough = 1e-6;
  double factor = 1;
  for (int run = 0; run < kMostRuns; ++run) {
    const double missing = simulated(with_slower_devices(topology, factor, "")) / per_second;
    if (std::abs(missing - 1) < kEnough) return factor;
    factor *= missing;
  }
  throw RunError(fmt::format("no speed of the device gives {} ({})", rate_text(per_second, "examples/s"), source));
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
  DeviceFit fit(topology);
  double logarithms = 0;
  std::string source = "fitted to";
  for (const MeasuredThroughput& each : measured) {
    const double before = simulated_per_second(topology, type, each.workload);
    fit.throughputs.push_back({.source = each.source, .measured = each.per_second, .before = before});
    const auto simulated = [&](const Topology& slowed) { return simulated_per_second(slowed, type, each.workload); };
    logarithms += portable::log(slowness_of_devices(topology, simulated, each.per_second, each.source));
    source += fmt::format(" {:.6g}/s ({})", each.per_second, each.source);
  }
  fit.factor = portable::exp(logarithms / static_cast<double>(measured.size()));
  fit.topology = with_slower_devices(topology, fit.factor, source);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    fit.throughputs[i].after = simulated_per_second(fit.topology, type, measured[i].workload);
  }
  return fit;
}

}  // namespace tandem
