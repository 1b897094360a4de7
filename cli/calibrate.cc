#include "scenarios/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "reports/text_table.h"
#include "topologies/base/units.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

struct CalibrateFlags {
  CommonOptions common;
  std::string engine = "cpu";
  CalibrateOptions options;
};

std::string rates_text(const DeviceRates& rates) {
  const auto fastest = [](const auto& samples, auto rate) {
    double best = 0;
    for (const auto& sample : samples) best = std::max(best, rate(sample));
    return best;
  };
  const auto bytes_per_s = [](const RateSample& sample) { return sample.bytes_per_s; };
  const double flops = fastest(rates.gemm, [](const GemmSample& sample) { return sample.flops_per_s; });
  return fmt::format("  {} at once: gemm up to {}, memory up to {}, copies up to {} each\n", rates.concurrency,
                     format_quantity(flops, Dimension::flops_per_second),
                     format_quantity(fastest(rates.memory, bytes_per_s), Dimension::bytes_per_second),
                     format_quantity(fastest(rates.copy, bytes_per_s), Dimension::bytes_per_second));
}

std::string device_text(const DeviceModel& model) {
  std::string text = fmt::format("{}: an op costs {} besides its work, a launch {}, a synchronize {}\n", model.name,
                                 format_quantity(model.op_overhead_s.value, Dimension::seconds),
                                 format_quantity(model.launch_overhead_s.value, Dimension::seconds),
                                 format_quantity(model.synchronize_s.value, Dimension::seconds));
  for (const DeviceRates& rates : model.rates) text += rates_text(rates);
  return text;
}

std::string summary_text(const Topology& topology) {
  std::string text = fmt::format("calibrated {}\n", topology.name());
  for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu}) {
    if (topology.worker_count() == 0) break;
    for (const NodeIndex node : topology.nodes_of(0, kind)) {
      if (topology.node(node).device) text += device_text(*topology.node(node).device);
    }
  }
  if (topology.collectives().empty()) return text + "no collectives: they need two devices\n";
  double spread = 0;
  for (const CollectiveSample& sample : topology.collectives()) spread = std::max(spread, sample.relative_spread);
  return text + fmt::format("{} collectives measured, the noisiest with a spread of {}\n",
                            topology.collectives().size(), percent_text(spread));
}

int calibrate_machine(CalibrateFlags flags) {
  const Output output(flags.common);
  ProgressLine progress(flags.common);
  flags.options.progress = progress.of_stages("calibrating");
  const Topology topology = calibrate(flags.engine, flags.options);
  progress.finish();
  std::ostringstream yaml;
  write_topology_yaml(topology, yaml);
  output.write_text(yaml.str());
  if (!flags.common.quiet) std::cerr << summary_text(topology) << std::flush;
  return kOk;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine and write it as a topology file");
  auto flags = std::make_shared<CalibrateFlags>();
  command->add_option("--engine", flags->engine, "Measure through this engine (default: cpu)");
  command->add_option("--devices", flags->options.max_devices, "Measure up to so many devices working at once")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--quick", flags->options.quick, "Fewer repetitions");
  add_common_options(*command, flags->common, false);
  command->callback([flags, &action] { action = [flags] { return calibrate_machine(*flags); }; });
}

}  // namespace tandem
