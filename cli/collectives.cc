#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/load.h"
#include "cli/base/nccl_environment.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "cli/base/unused_flags.h"
#include "cli/collective_words.h"
#include "engine/engine_info.h"
#include "reports/nccl_tests/nccl_tests_writer.h"
#include "scenarios/collectives/collective_assumptions.h"
#include "scenarios/collectives/collective_job.h"
#include "scenarios/collectives/sweep_sizes.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/measurements/published_tables.h"
#include "scenarios/scenario/words.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

struct CollectivesFlags {
  CommonOptions common;
  std::string operation = "all_reduce";
  bool names_operation = false;
  std::string engine;
  std::string topology;
  ImportOptions import;
  std::string against;
  std::optional<DeviceType> device_type;
  std::optional<int> workers;
  std::optional<int> devices;
  std::optional<std::int64_t> least, most;
  std::int64_t step_bytes = 1 << 20;
  double factor = 1;
  std::optional<int> iterations, warmup;
  std::string dtype;
  std::string reduction = "sum";
  int root = 0;
  bool checks_values = true;
  std::optional<CollectiveFidelity> collectives;
  std::map<std::string, std::string> nccl;
  bool assumptions = false;
  GivenFlags given;
};

constexpr std::int64_t kUsualBytes = 32 << 20;  // nccl-tests' default of -b and -e
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr int kUsualIterations = 20;
constexpr int kUsualWarmup = 5;

int usage_error(const std::string& message) {
  std::cerr << "tandem collectives: " << shown(message) << "\nSee 'tandem collectives --help'." << std::endl;
  return kUsage;
}

// The job, and the table with which it is compared.
struct Prepared {
  CollectiveJob job{};
  CollectiveSweep sweep{};
  std::optional<validation::MeasuredTable> published{};
  std::optional<Against> against{};
  std::int64_t least_bytes = 0, most_bytes = 0;  // as asked
  std::string problem{};                         // with the command line; empty: none
};

// Returns whether the run is of the machine that the table's file names, because the command line names none.
bool takes_machine(const CollectivesFlags& flags) {
  return flags.topology.empty() && (flags.engine.empty() || flags.engine == model_engine().name);
}

// Finds the table of --against. A topology of several machines says on how many of them it was measured.
void find_table(const CollectivesFlags& flags, Prepared& prepared) {
  if (flags.against.empty()) return;
  std::optional<int> machines = flags.workers;
  if (!machines && !flags.topology.empty()) {
    const int all = machine_of(flags.topology, {}, flags.import)->worker_count();
    if (all > 1) machines = all;
  }
  const bool builds = takes_machine(flags);
  prepared.published = published_table(flags.against,
                                       {.operation = flags.names_operation ? flags.operation : "",
                                        .dtype = flags.dtype,
                                        .devices_of_machine = flags.devices.value_or(0),
                                        .machines = machines.value_or(0)},
                                       builds ? validation::Machines::build : validation::Machines::ignore);
  const validation::MeasuredTable& found = *prepared.published;
  if (!builds || found.machine || found.lacks.empty()) return;
  throw InputError({{.file = flags.against,
                     .line = std::max(1, found.table.line),
                     .path = "",
                     .message = fmt::format("does not state {}; name the machine by --topology", found.lacks)}});
}

// Returns how many machines take part, if the command line does not say it: those of the table, whose devices fill one
// machine after the other where it does not state their number.
std::optional<int> machines_of(const CollectivesFlags& flags, const Prepared& prepared) {
  if (flags.workers || !prepared.published) return flags.workers;
  const auto one = machine_of(flags.topology, {}, flags.import);
  const CollectiveTable& table = prepared.published->table;
  if (one->worker_count() > 1) return {};
  if (table.nodes > 0) return table.nodes;
  const int gpus = static_cast<int>(one->nodes_of(0, NodeKind::gpu).size());
  return gpus > 0 && table.devices > gpus && table.devices % gpus == 0 ? table.devices / gpus : std::optional<int>();
}

// The machine that the table's file names, with NCCL as it was.
CollectiveJob job_of_table(const CollectivesFlags& flags, const validation::MeasuredTable& published) {
  CollectiveJob job;
  const validation::ReplayMachine& machine = *published.machine;
  job.engine = model_engine().name;
  job.topology = machine.topology;
  job.device_type = DeviceType::gpu;
  job.workers = flags.workers.value_or(machine.nodes);
  job.nccl = flags.nccl;
  const int devices = published.table.devices / machine.nodes;
  job.nccl.merge(machine.nccl_of_job(devices, published.table.nccl_version));
  return job;
}

// Returns the job: by default on this machine's engine; with a topology, on the engine that models one.
CollectiveJob job_of(const CollectivesFlags& flags, const Prepared& prepared) {
  CollectiveJob job;
  if (prepared.published && prepared.published->machine) {
    job = job_of_table(flags, *prepared.published);
  } else {
    job.engine = !flags.engine.empty()    ? flags.engine
                 : flags.topology.empty() ? std::string(machine_engine().name)
                                          : std::string(model_engine().name);
    const EngineInfo& info = engine_info(job.engine);
    if (info.needs_topology) {
      if (flags.topology.empty())
        throw UnavailableError(fmt::format("engine '{}' needs --topology NAME or FILE", job.engine));
      job.topology = machine_of(flags.topology, machines_of(flags, prepared), flags.import);
    }
    const bool has_gpus =
        job.topology ? !job.topology->nodes_of(0, NodeKind::gpu).empty() : info.default_device == DeviceType::gpu;
    job.device_type = has_gpus ? DeviceType::gpu : DeviceType::cpu;
    job.workers = flags.workers.value_or(job.topology ? job.topology->worker_count() : 1);
    job.nccl = flags.nccl;
  }
  if (flags.device_type) job.device_type = *flags.device_type;
  job.collectives = flags.collectives;
  return job;
}

// Takes what the command line leaves open from the table with which this run is compared.
void take_over(const CollectiveTable& table, CollectivesFlags& flags, CollectiveSweep& sweep, CollectiveJob& job) {
  if (!flags.names_operation) flags.operation = table.operation;
  if (flags.dtype.empty()) flags.dtype = table.dtype;
  if (!flags.devices && table.devices > 0) job.devices = std::max(1, table.devices / job.workers);
  if (flags.least || flags.most) return;
  for (const CollectiveRow& row : table.rows) sweep.sizes.push_back(row.bytes);
}

CollectiveRun run_of(const CollectivesFlags& flags, const Prepared& prepared, const CollectiveResult& result) {
  const CollectiveJob& job = prepared.job;
  const CollectiveSweep& sweep = prepared.sweep;
  CollectiveRun run;
  run.engine = job.engine;
  run.topology = job.topology ? job.topology->name() : "";
  run.least_bytes = prepared.least_bytes;
  run.most_bytes = prepared.most_bytes;
  run.step_bytes = flags.step_bytes;
  run.step_factor = flags.factor;
  run.warmup = sweep.warmup;
  run.iterations = sweep.iterations;
  for (const CollectiveRow& row : result.table.rows) run.checks_values |= row.wrong.has_value();
  run.devices_per_worker = job.devices;
  const auto of_process = job.nccl.find("devices_per_process");
  run.one_process_a_device = job.topology && (of_process == job.nccl.end() || of_process->second == "1");
  for (const DeviceId& id : result.devices) {
    run.devices.push_back({fmt::format("{}{}", id.job, id.task), id.index, id.text()});
  }
  run.device_model = result.device_model;
  run.settings = result.settings;
  run.notes = result.notes;
  if (job.topology && job.device_type == DeviceType::gpu && result.table.devices > 1)
    run.expected_errors = expected_errors(*job.topology, job.workers, result.table);
  if (flags.assumptions || has_cheap_assumptions(job)) {
    const FigureRanges ranges = flags.assumptions ? FigureRanges::of_catalog : FigureRanges::stated;
    run.assumptions = assumptions_of(job, sweep, result, ranges, flags.assumptions);
  }
  if (flags.assumptions && run.assumptions.empty()) {
    run.notes.emplace_back(result.deterministic ? "no assumed figure of the machine moves a time by 0.1 %"
                                                : "--assumptions has no effect: the times are measured");
  }
  if (job.topology) {
    const std::vector<std::string>& notes = job.topology->facts().notes;
    run.notes.insert(run.notes.end(), notes.begin(), notes.end());
  }
  if (prepared.published && !prepared.published->table.left_out.empty()) {
    run.notes.push_back(
        fmt::format("{}: the table is not whole, left out are {}", flags.against, prepared.published->table.left_out));
  }
  UnusedKeys unused;
  find_unused_flags(flags.given, flags.nccl, job, sweep, result, unused);
  for (std::string& note : unused.notes()) run.notes.push_back(std::move(note));
  return run;
}

void choose_sizes(const CollectivesFlags& flags, Prepared& prepared) {
  CollectiveSweep& sweep = prepared.sweep;
  if (!sweep.sizes.empty()) {
    const auto [smallest, largest] = std::minmax_element(sweep.sizes.begin(), sweep.sizes.end());
    prepared.least_bytes = *smallest;
    prepared.most_bytes = *largest;
    return;
  }
  const std::int64_t least = flags.least.value_or(std::min(kUsualBytes, flags.most.value_or(kUsualBytes)));
  const std::int64_t most = flags.most.value_or(std::max(kUsualBytes, least));
  sweep.sizes = sweep_sizes(least, most, flags.step_bytes, flags.factor);
  prepared.least_bytes = least;
  prepared.most_bytes = most;
}

std::string problem_of(const CollectivesFlags& flags, const Prepared& prepared, int machine_devices) {
  const CollectiveJob& job = prepared.job;
  if (job.topology && job.devices > machine_devices && !flags.devices) {
    return fmt::format("{} has {} devices, and '{}' has {} {}s in a machine: say --workers and -g", flags.against,
                       prepared.published->table.devices, job.topology->name(), machine_devices,
                       name_of(job.device_type));
  }
  if (job.topology && job.devices > machine_devices) {
    return fmt::format("-g {}: '{}' has {} {}s in a machine", job.devices, job.topology->name(), machine_devices,
                       name_of(job.device_type));
  }
  if (job.topology && job.workers > job.topology->worker_count()) {
    return fmt::format("--workers {}: {} has {} machines; name the machine by --topology", job.workers, flags.against,
                       job.topology->worker_count());
  }
  if (prepared.sweep.sizes.empty()) return "-b is larger than -e";
  if (prepared.sweep.sizes.size() > kMostSizes) {
    return fmt::format("more than {} sizes from {} to {} bytes: use a larger -i, or -f", kMostSizes,
                       prepared.least_bytes, prepared.most_bytes);
  }
  const std::int64_t ranks = std::int64_t{job.workers} * job.devices;
  if (ranks > kMostRanks)
    return fmt::format("{} machines of {} devices: at most {} devices take part", job.workers, job.devices, kMostRanks);
  if (flags.root >= ranks) return fmt::format("-r {}: there are {} devices", flags.root, ranks);
  if (flags.operation == "send_receive" && ranks < 2) return "send_receive needs at least two devices";
  return "";
}

Prepared prepare(CollectivesFlags& flags) {
  Prepared prepared;
  find_table(flags, prepared);
  CollectiveJob& job = prepared.job;
  CollectiveSweep& sweep = prepared.sweep;
  job = job_of(flags, prepared);
  const int machine_devices = devices_of_machine(job);
  constexpr int kMostByDefault = 8;
  const int usual = job.topology ? machine_devices : std::min(machine_devices, kMostByDefault);
  job.devices = flags.devices.value_or(std::max(1, usual));
  if (prepared.published) {
    take_over(prepared.published->table, flags, sweep, job);
    prepared.against.emplace(prepared.published->table);
  }
  choose_sizes(flags, prepared);
  sweep.kind = *kind_of_operation(flags.operation);
  sweep.dtype = dtype_of_nccl(flags.dtype).value_or(DType::f32);
  sweep.reduction = reduction_of_nccl(flags.reduction).value_or(Reduction::sum);
  sweep.root = flags.root;
  // One call of a model says as much as twenty.
  sweep.iterations = flags.iterations.value_or(job.topology ? 1 : kUsualIterations);
  sweep.warmup = flags.warmup.value_or(job.topology ? 0 : kUsualWarmup);
  sweep.checks_values = flags.checks_values;
  prepared.problem = problem_of(flags, prepared, machine_devices);
  return prepared;
}

int time_collectives(CollectivesFlags flags) {
  const Output output(flags.common);
  const Prepared prepared = prepare(flags);
  if (!prepared.problem.empty()) return usage_error(prepared.problem);
  ProgressLine progress(flags.common);
  CollectiveResult result = run_collective(
      prepared.job, prepared.sweep, progress.of_calls(flags.operation, timed_sizes(prepared.job, prepared.sweep)));
  progress.finish();
  if (result.settings.contains("nccl") && prepared.job.topology && !flags.common.quiet) {
    std::cerr << unread_nccl_variables(process_environment(), prepared.job.nccl);
  }
  if (result.table.rows.empty()) {
    return usage_error(fmt::format("no size from {} to {} bytes holds an element of {} for each of {} devices",
                                   prepared.least_bytes, prepared.most_bytes, result.table.dtype,
                                   result.table.devices));
  }
  if (!flags.dtype.empty()) result.table.dtype = flags.dtype;
  const CollectiveRun run = run_of(flags, prepared, result);
  if (output.json()) {
    output.write_json(nccl_tests_json(run, result.table, prepared.against));
  } else {
    output.write_text(nccl_tests_text(run, result.table, prepared.against));
  }
  const bool wrong = std::any_of(result.table.rows.begin(), result.table.rows.end(),
                                 [](const CollectiveRow& row) { return row.wrong.value_or(0) > 0; });
  return wrong ? kRunFailed : kOk;
}

void add_sweep_options(CLI::App& command, CollectivesFlags& flags) {
  command.add_option("-b,--minbytes", flags.least, "Smallest size; K, M, G are powers of 1024 (default: 32M)")
      ->transform(sweep_size());
  command.add_option("-e,--maxbytes", flags.most, "Largest size (default: 32M)")->transform(sweep_size());
  command.add_option("-i,--stepbytes", flags.step_bytes, "From size to size add so many bytes (default: 1M)")
      ->transform(sweep_size())
      ->check(CLI::PositiveNumber);
  command.add_option("-f,--stepfactor", flags.factor, "From size to size multiply by so much, instead of -i")
      ->check(number_within(1, 1e9));
  command
      .add_option("-n,--iters", flags.iterations,
                  "Timed calls of each size (default: 20; of a model: 1, since all are equal)")
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("-w,--warmup_iters", flags.warmup, "Calls before them (default: 5; of a model: 0)")
      ->check(CLI::Range(0, 1 << 30));
  command.add_option("-d,--datatype", flags.dtype, "Element type, in nccl-tests' words (default: float)")
      ->check(nccl_dtype());
  command.add_option("--op", flags.reduction, "Reduction: sum, max, min (default: sum)")
      ->check(CLI::IsMember({"sum", "max", "min"}));
  command.add_option("-r,--root", flags.root, "Root of broadcast and reduce (default: 0)")
      ->check(CLI::Range(0, 1 << 30));
  command.add_option("-c,--check", flags.checks_values, "Whether values are checked: 0 or 1 (default: 1)");
}

}  // namespace

void add_collectives(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("collectives", "Time a collective over a range of sizes, as nccl-tests does");
  auto flags = std::make_shared<CollectivesFlags>();
  CLI::Option* operation =
      command->add_option("collective", flags->operation, "all_reduce (the default), all_gather, reduce_scatter, ...")
          ->transform(collective_name());
  add_sweep_options(*command, *flags);
  command
      ->add_option("-g,--ngpus", flags->devices,
                   "Devices of each machine (default: all of them, of a real one at most 8)")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option(
      "--engine", flags->engine,
      fmt::format("Run on this engine (default: {}; with --topology: {})", machine_engine().name, model_engine().name));
  CLI::Option* topology = command->add_option("--topology", flags->topology,
                                              "What is modelled: a machine of the catalog, or a topology file");
  add_import_options(*command, flags->import, topology);
  command->add_option("--workers", flags->workers, "Machines (default: those of the topology)")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--device-type", flags->device_type, "cpu or gpu (default: gpu where there are some)")
      ->transform(device_types());
  const auto words = fidelity_words();
  const std::map<std::string, CollectiveFidelity> fidelities(words.begin(), words.end());
  command->add_option("--collectives", flags->collectives, "Fidelity of simulated collectives: fluid or message")
      ->transform(CLI::CheckedTransformer(fidelities).description("{fluid,message}"));
  add_nccl_option(*command, flags->nccl);
  command->add_option(
      "--against", flags->against,
      "Show the errors against these times: output of nccl-tests or of this command, or a file of measurements");
  command->add_flag("--assumptions", flags->assumptions,
                    "Of a prediction: which assumed figures of the machine move its times most, and by how much");
  add_common_options(*command, flags->common);
  command->callback([flags, operation, command, &action] {
    flags->names_operation = operation->count() > 0;
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0) flags->given.insert(option->get_name());
    }
    action = [flags] { return time_collectives(*flags); };
  });
}

}  // namespace tandem
