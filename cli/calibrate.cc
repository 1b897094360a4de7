#include "scenarios/calibration/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/join.h"
#include "cli/base/output.h"
#include "cli/base/phase.h"
#include "cli/base/progress_line.h"
#include "cli/calibrate_from.h"
#include "engine/engine_info.h"
#include "reports/base/text_table.h"
#include "reports/run/report_text.h"
#include "scenarios/calibration/calibrate_cluster.h"
#include "scenarios/job/launch.h"
#include "scenarios/job/machine_watch.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

struct CalibrateFlags {
  CommonOptions common;
  std::string engine{machine_engine().name};
  std::vector<std::string> dtypes;
  int tries = 3;
  CalibrateOptions options;
  CalibrateFromFlags from;
};

// Refuses engines that model a machine, since there is nothing to measure.
CLI::Validator engine_that_is_a_machine() {
  return {[](const std::string& name) {
            const EngineInfo* engine = find_engine(name);
            const bool is_model = engine != nullptr && engine->needs_topology;
            return is_model ? fmt::format("engine '{}' models a machine, must be one", name) : "";
          },
          "", "engine"};
}

CLI::Validator known_dtype() {
  return {
      [](const std::string& name) { return dtype_from_name(name) ? "" : fmt::format("'{}' is no element type", name); },
      "", "dtype"};
}

template <typename Sample, typename Value>
double fastest(const std::vector<Sample>& samples, Value value) {
  double best = 0;
  for (const Sample& sample : samples) best = std::max(best, value(sample));
  return best;
}

// Returns the rates of one device that works beside others; devices that share a GPU or cores each have a part of it.
std::string rates_text(const DeviceModel& model, const DeviceRates& rates) {
  const auto bytes_per_s = [](const RateSample& sample) { return sample.bytes_per_s; };
  const double share = std::min(1.0, static_cast<double>(model.cores) / rates.concurrency);
  const double flops = share * fastest(rates.gemm, [](const GemmSample& sample) { return sample.flops_per_s; });
  std::string text = fmt::format("  {} at the same time: {} gemm up to {}", rates.concurrency, name_of(rates.dtype),
                                 format_quantity(flops, Dimension::flops_per_second));
  if (!rates.memory.empty()) {
    text += fmt::format(", memory up to {}",
                        format_quantity(share * fastest(rates.memory, bytes_per_s), Dimension::bytes_per_second));
  }
  if (!rates.copy.empty()) {
    const double copies = (model.copy_engines == 0 ? share : 1) * fastest(rates.copy, bytes_per_s);
    text += fmt::format(", copies up to {}", format_quantity(copies, Dimension::bytes_per_second));
  }
  return text + " each\n";
}

std::string device_text(const DeviceModel& model) {
  std::string text = fmt::format("{}: an op costs {} besides its work, a launch {}, a synchronize {}\n", model.name,
                                 format_quantity(model.op_overhead_s.value, Dimension::seconds),
                                 format_quantity(model.launch_overhead_s.value, Dimension::seconds),
                                 format_quantity(model.synchronize_s.value, Dimension::seconds));
  if (model.graph_op_overhead_s.value > 0) {
    text += fmt::format("  in CUDA graphs: an op costs {} besides its work, a launch {}\n",
                        format_quantity(model.graph_op_overhead_s.value, Dimension::seconds),
                        format_quantity(model.graph_launch_overhead_s.value, Dimension::seconds));
  }
  if (model.collective_slowdown.value > 0) {
    text += fmt::format("  beside a collective: ops take {:.2f} times as long\n", model.collective_slowdown.value);
  }
  for (const DeviceRates& rates : model.rates) text += rates_text(model, rates);
  return text;
}

std::string links_text(const Topology& topology) {
  std::string text;
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const LinkModel& link = *topology.link(i).model;
    text += fmt::format("{}: {}, latency {}\n", link.id,
                        format_quantity(link.bandwidth_bytes_per_s.value, Dimension::bytes_per_second),
                        format_quantity(link.latency_s.value, Dimension::seconds));
  }
  return text;
}

std::string summary_text(const Topology& topology) {
  std::string text = fmt::format("calibrated {}\n", topology.name());
  for (int worker = 0; worker < topology.worker_count(); ++worker) {
    for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu}) {
      for (const NodeIndex node : topology.nodes_of(worker, kind)) {
        if (topology.node(node).device) text += device_text(*topology.node(node).device);
      }
    }
  }
  text += links_text(topology);
  if (topology.facts().collectives.empty()) return text + "no collectives: they need two devices\n";
  double spread = 0;
  for (const CollectiveSample& sample : topology.facts().collectives) spread = std::max(spread, sample.relative_spread);
  return text + fmt::format("{} collectives measured, the noisiest with a spread of {}\n",
                            topology.facts().collectives.size(), percent_text(spread));
}

std::string traffic_text(const std::vector<TrafficCheck>& traffic) {
  std::string text;
  for (const TrafficCheck& check : traffic) {
    text += fmt::format("{}: {} each", check.what,
                        format_quantity(check.measured_bytes_per_s, Dimension::bytes_per_second));
    if (check.simulated_bytes_per_s > 0) {
      text += fmt::format(", simulated {} ({:+.1f} %)",
                          format_quantity(check.simulated_bytes_per_s, Dimension::bytes_per_second),
                          100 * (check.simulated_bytes_per_s / check.measured_bytes_per_s - 1));
    }
    text += "\n";
  }
  return text;
}

void write_topology(const Output& output, const Topology& topology) {
  std::ostringstream yaml;
  write_topology_yaml(topology, yaml);
  output.write_document(yaml.str());
}

// The processes of a launch are the machines of a cluster. There is only one try, because after each try all processes
// would have to agree on whether another one follows.
int calibrate_launched(LaunchedJob& job, const CalibrateFlags& flags) {
  if (flags.options.device_type == DeviceType::gpu) {
    throw UnavailableError("the devices of several ranks are CPUs; calibrate GPUs in one process");
  }
  job.state(tf_config_of_all(process_environment()));
  job.state({{"calibration", fmt::format("{} devices, {}, {}", flags.options.max_devices,
                                         flags.options.quick ? "quick" : "full", fmt::join(flags.dtypes, ","))}});
  const Output output(flags.common);
  ProgressLine progress(flags.common);
  CalibrateOptions options = flags.options;
  options.progress = progress.of_stages("calibrating");
  const ClusterCalibration found = calibrate_cluster(flags.engine, job.rank().count, options);
  progress.finish();
  if (!reports_for_job()) return kOk;
  write_topology(output, found.topology);
  if (!flags.common.quiet)
    std::cerr << shown_output(summary_text(found.topology) + traffic_text(found.traffic)) << std::flush;
  return kOk;
}

int calibrate_machine(CalibrateFlags flags) {
  for (const std::string& name : flags.dtypes) flags.options.dtypes.push_back(*dtype_from_name(name));
  const EngineInfo& engine = engine_info(flags.engine);
  check_engine_of_launch(engine);
  if (engine.join != nullptr) {
    LaunchedJob* const job = join_processes(&engine);
    check_tf_config(job == nullptr ? Rank() : job->rank(), process_environment());
    if (job != nullptr) return calibrate_launched(*job, flags);
  }
  const Output output(flags.common);
  ProgressLine progress(flags.common);
  flags.options.progress = progress.of_stages("calibrating");
  std::optional<Topology> measured;
  std::optional<Phase> phase("calibrate");
  const auto use = measure_undisturbed(flags.tries, [&](std::vector<GpuUse>& gpus) {
    flags.options.gpus = &gpus;
    measured = calibrate(flags.engine, flags.options);
  });
  Topology& topology = *measured;
  progress.finish();
  phase.reset();
  if (use && use->is_disturbed()) {
    std::cerr << "tandem: disturbed: " << shown(lost_text(*use)) << "\n";
    topology.facts().set_disturbance(lost_text(*use));
  }
  write_topology(output, topology);
  if (!flags.common.quiet) std::cerr << shown_output(summary_text(topology)) << std::flush;
  return kOk;
}

// Returns the options that apply only to measuring.
std::vector<CLI::Option*> add_measuring_options(CLI::App& command, CalibrateFlags& flags) {
  return {
      command
          .add_option("--engine", flags.engine, fmt::format("Measure through this engine (default: {})", flags.engine))
          ->check(engine_that_is_a_machine()),
      command
          .add_option("--devices", flags.options.max_devices,
                      "Measure up to so many logical devices working together (default: every GPU, or four for each "
                      "core; at most 8)")
          ->check(CLI::Range(1, 1024)),
      command
          .add_option("--device-type", flags.options.device_type,
                      "Measure devices of this type: cpu or gpu (default: gpu where the engine has some)")
          ->transform(device_types()),
      command
          .add_option("--dtypes", flags.dtypes,
                      "Measure matrix products of these types: f32,bf16 (default: all of the engine; with --quick f32)")
          ->delimiter(',')
          ->check(known_dtype()),
      command
          .add_option("--tries", flags.tries,
                      "How often to measure while others disturb it (default: 3; several ranks measure once)")
          ->check(CLI::Range(1, 100)),
      command
          .add_option("--warm-up", flags.options.warm_up_s,
                      "Let GPUs multiply for so many seconds first (default: 10; with --quick 5)")
          ->check(number_within(0, limits_of(Dimension::seconds).most)),
      command.add_flag("--quick", flags.options.quick, "Fewer sizes and repetitions")};
}

void add_from_options(CLI::App& command, CalibrateFromFlags& flags, const std::vector<CLI::Option*>& measuring) {
  CLI::Option* from = command.add_option("--from", flags.files,
                                         "Take collectives from these files instead: the output of nccl-tests, "
                                         "reports, topologies with measured collectives");
  for (CLI::Option* option : measuring) from->excludes(option);
  CLI::Option* topology =
      command.add_option("--topology", flags.topology,
                         "With --from: where they were measured, a topology file or a machine of the catalog");
  topology->needs(from);
  from->needs(topology);
  command.add_option("--report", flags.report, "With --from: also write what was fitted to this file, as JSON")
      ->needs(from);
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Write a topology file with measured figures: of this machine, or from files of measurements");
  auto flags = std::make_shared<CalibrateFlags>();
  add_from_options(*command, flags->from, add_measuring_options(*command, *flags));
  add_common_options(*command, flags->common, false);
  command->callback([flags, &action] {
    action = [flags] {
      return flags->from.files.empty() ? calibrate_machine(*flags) : calibrate_from(flags->common, flags->from);
    };
  });
}

}  // namespace tandem
