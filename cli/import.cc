#include "scenarios/import/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "cli/job_form.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/estimates/size_check.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/activations.h"
#include "strategies/model/lora.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
  CommonOptions common;
  std::vector<std::string> files;
  ImportChoices options;
  std::string format = "scenario";
};

// "scenario.yaml" has its model in "scenario.model.yaml".
fs::path model_beside(const fs::path& scenario) {
  return scenario.parent_path() / (scenario.stem().string() + ".model.yaml");
}

// Returns the memory that the scenario is predicted to need.
std::string needs_text(const Scenario& scenario) {
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  const ActivationSettings one = activation_settings(layers, 1);
  constexpr double kFlopsOfMac = 2;
  std::string text =
      fmt::format("flops of a step: {:.4g}\n", kFlopsOfMac * training_macs(layers.model) * scenario.workload.batch);
  text += fmt::format("activations that an example keeps: {:.4g} GB\n",
                      static_cast<double>(activation_bytes(layers.model.layers, one)) / 1e9);
  if (const auto need = memory_need(job_of(scenario)); need && need->fits()) {
    text += "a device " + memory_text(*need) + "\n";
  }
  return text;
}

void warn_of_memory(const std::string& file, const Scenario& scenario) {
  const auto need = memory_need(job_of(scenario));
  if (!need || need->fits()) return;
  std::cerr << fmt::format(
      "warning: {}: a device {}; `tandem run` refuses that: give more machines (--workers), --recompute, a smaller "
      "--batch, or GPUs with more memory (--topology)\n",
      shown(file), memory_text(*need));
}

std::string summary_of(const Imported& imported, const Scenario& scenario) {
  std::string text;
  for (const std::string& fact : imported.facts) text += shown(fact) + "\n";
  if (std::holds_alternative<LayersSettings>(scenario.workload.kind)) text += needs_text(scenario);
  for (const std::string& assumed : imported.assumed) text += "assumed: " + shown(assumed) + "\n";
  for (const std::string& flag : imported.left_out) text += "not modelled: " + shown(flag) + "\n";
  return text;
}

constexpr const char* kOwnMachine = "the machine of the trace";

// Returns the time of a step. If this machine is too small for the run, warns and returns nothing, because the scenario
// may be meant for another machine.
std::optional<double> simulated_ns_of(const Scenario& scenario) {
  try {
    return static_cast<double>(run_scenario(scenario, {.only_report = true}).report.summary.step_time.mean);
  } catch (const SizeError& error) {
    std::cerr << "warning: " << shown(error.what()) << "; not simulated\n";
    return std::nullopt;
  }
}

// Shows the simulated time beside the recorded one, if there is one. The two are comparable only on the machine of the
// recording.
std::string played_text(const Scenario& scenario, const std::string& machine) {
  std::int64_t recorded_ns = 0;
  for (const RankTrace& rank : *std::get<TraceSettings>(scenario.workload.kind).ranks) {
    recorded_ns = std::max(recorded_ns, rank.recorded_ns);
  }
  const std::optional<double> simulated_ns = simulated_ns_of(scenario);
  if (!simulated_ns) return "";
  const auto recorded = static_cast<double>(recorded_ns);
  if (recorded_ns == 0)
    return fmt::format("on {}: simulated {:.4f} ms\n", scenario.topology->name(), *simulated_ns * 1e-6);
  return fmt::format("on {}: simulated {:.4f} ms, recorded {:.4f} ms ({:+.2f} %)\n", machine, *simulated_ns * 1e-6,
                     recorded * 1e-6, 100 * (*simulated_ns - recorded) / recorded);
}

// Simulates the machine of the recording first, then another one if it was asked for.
std::string traces_text(const std::vector<fs::path>& files, const ImportChoices& options, int unsaid_ranks,
                        const Scenario& scenario, const fs::path& scenario_file) {
  const auto& trace = std::get<TraceSettings>(scenario.workload.kind);
  if (options.topology.empty() && trace.changes.empty()) return played_text(scenario, kOwnMachine);
  const Imported own = import_traces(files, {.ranks = unsaid_ranks}, scenario_file.parent_path());
  std::string text = played_text(parse_scenario(own.scenario, scenario_file.string()), kOwnMachine);
  for (const std::string& change : trace.changes) text += "changed: " + change + "\n";
  return text + played_text(scenario, options.topology.empty() ? scenario.topology->name() : options.topology);
}

int import_of_traces(const ImportFlags& flags) {
  std::vector<fs::path> files;
  for (const std::string& file : flags.files) {
    const ImportKind kind = InputFile(file).kind();
    if (kind != ImportKind::trace) {
      throw InputError({problem_at(
          file, beginning_of(file),
          "is " + text_of(kind) + "; several files, or a trace and others, must all be traces of one job's ranks")});
    }
    files.emplace_back(file);
  }
  const bool has_output = !flags.common.output.empty() && flags.common.output != "-";
  const fs::path scenario_file = has_output ? fs::path(flags.common.output) : fs::path("trace.yaml");
  const Imported imported = import_traces(files, flags.options, scenario_file.parent_path());
  const Scenario scenario = parse_scenario(imported.scenario, scenario_file.string());
  if (has_output) write_file(scenario_file.string(), imported.scenario);
  if (!has_output) std::cout << imported.scenario;
  if (flags.common.quiet) return kOk;
  std::ostream& out = has_output ? std::cout : std::cerr;
  out << "read " << text_of(imported.kind) << '\n'
      << shown_output(summary_of(imported, scenario) +
                      traces_text(files, flags.options, imported.ranks, scenario, scenario_file));
  if (has_output) out << "wrote " << shown(scenario_file.string()) << '\n';
  return kOk;
}

// Writes a file, which may be a scenario, as a job of another program.
int import_as_job(const ImportFlags& flags, JobForm form) {
  const std::string& file = flags.files.front();
  check_exists("scenario", file);
  if (flags.files.size() > 1) {
    throw InputError({problem_at(file, beginning_of(file), "--format megatron and torchtitan are for one file")});
  }
  const auto opened = std::make_shared<const InputFile>(file);
  const std::string& output = flags.common.output;
  if (opened->kind() == ImportKind::scenario) {
    check_no_choices(file, flags.options);
    write_job(parse_scenario(opened->text(), file), {}, form, output, flags.common);
  } else {
    const Imported imported = import_that_fits(opened, flags.options, "", opened->path().parent_path());
    write_job(parse_imported(imported, file, {}, parts_of(opened)), imported.origins, form, output, flags.common);
  }
  return kOk;
}

int import(const ImportFlags& flags) {
  if (const auto form = job_form(flags.format)) return import_as_job(flags, *form);
  const std::string& file = flags.files.front();
  ProgressLine progress(flags.common);
  progress.begin(file);
  if (flags.files.size() > 1) return import_of_traces(flags);
  const auto opened = std::make_shared<const InputFile>(file);
  if (opened->kind() == ImportKind::trace) return import_of_traces(flags);
  const bool has_output = !flags.common.output.empty() && flags.common.output != "-";
  const fs::path scenario_file = has_output ? fs::path(flags.common.output) : fs::path(file);
  const fs::path model_file = model_beside(scenario_file);
  const Imported imported = import_that_fits(
      opened, flags.options, has_output ? model_file.filename().string() : std::string(), scenario_file.parent_path());
  if (!has_output) {
    const Scenario scenario = parse_imported(imported, scenario_file.string(), {}, parts_of(opened));
    std::cout << imported.scenario;
    if (flags.common.quiet) return kOk;
    std::cerr << shown_output(summary_of(imported, scenario));
    warn_of_memory(file, scenario);
    return kOk;
  }
  if (!imported.model.empty()) write_file(model_file.string(), imported.model);
  write_file(scenario_file.string(), imported.scenario);
  const Scenario scenario = load_scenario(scenario_file);
  if (flags.common.quiet) return kOk;
  std::cout << "read " << text_of(imported.kind) << '\n'
            << shown_output(summary_of(imported, scenario)) << "wrote " << shown(scenario_file.string());
  if (!imported.model.empty()) std::cout << " and " << shown(model_file.string());
  std::cout << std::endl;
  warn_of_memory(file, scenario);
  return kOk;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("import", "Make a scenario of another program's file, and say what that had to assume");
  auto flags = std::make_shared<ImportFlags>();
  ImportChoices& options = flags->options;
  command
      ->add_option("files", flags->files,
                   "A config.json of Hugging Face; arguments of Megatron-LM, as a shell script or the YAML of its "
                   "tests; a configuration of Megatron-Bridge; a job of torchtitan (TOML, Python); "
                   "traces of PyTorch's profiler or of Chakra, one for each rank")
      ->required();
  command->add_option("--sequence-length", options.tokens, "Tokens of a sequence")->check(CLI::Range(1, 1 << 24));
  command->add_option("--batch", options.batch, "Sequences, or images, of a step on all devices, of a model or a job")
      ->check(CLI::Range(1, 1 << 28));
  command
      ->add_option("--dtype", options.dtype, "The type that layers of a model, or of a job of Megatron-LM, compute in")
      ->check(CLI::IsMember({"f32", "tf32", "f16", "bf16"}));
  command
      ->add_option("--precision", options.precision,
                   "To what the operands of dense layers are quantised, of a model or of a job of Megatron-LM")
      ->check(CLI::IsMember({"fp8", "mxfp8", "nvfp4"}));
  command->add_option("--optimizer", options.optimizer, "The optimizer, of a model or of a job of Megatron-LM")
      ->check(CLI::IsMember({"sgd", "momentum", "adam", "lamb"}));
  command->add_flag("--recompute", options.recompute, "Compute blocks again in the backward pass, of a model or a job");
  command
      ->add_option("--predictors", options.predictors,
                   "Blocks that predict further tokens (multi-token prediction); a configuration's are left out")
      ->check(CLI::Range(1, 16));
  command->add_option("--dispatch", options.dispatch, "How rows reach the experts of other devices")
      ->check(CLI::IsMember({"all_to_all", "deepep", "hybridep"}));
  command->add_option("--config", options.config, "Which configuration of a Python file of torchtitan");
  command
      ->add_option(
          "--lora", options.lora,
          "The adapter_config.json of PEFT: which layers have low-rank adapters, the only parameters that learn")
      ->check(CLI::ExistingFile);
  const auto add_size = [command](const char* name, int& size, const char* what) {
    command->add_option(name, size, what)->check(CLI::Range(1, 1 << 20));
  };
  add_size("--tensor", options.tensor,
           "Devices that divide each layer of a configuration's model; the strategy is mesh");
  add_size("--pipeline", options.pipeline, "Stages of a pipeline");
  add_size("--virtual-stages", options.virtual_stages, "Stages of each device of the pipeline");
  add_size("--context", options.context, "Devices that divide the tokens of each sequence");
  add_size("--expert", options.expert, "Devices that divide the experts of each layer");
  add_size("--micro-batch", options.micro_batch, "Sequences of a micro-batch");
  command->add_option("--strategy", options.strategy,
                      "A strategy by name, of a model or of a job of Megatron-LM; torchtitan's follows from its "
                      "degrees, and traces keep what they recorded");
  CLI::Option* topology =
      command->add_option("--topology", options.topology, "A machine of the catalog, or a file beside the scenario");
  command->add_option("--gpu", options.gpu, "The GPUs of a topology file that does not tell them, such as h100")
      ->needs(topology);
  command
      ->add_option(
          "--devices", options.devices,
          "GPUs of each machine; with --workers, a trace's replicas become as many; of a trace that is its job's only "
          "file, how many ranks there are")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--workers", options.workers, "Machines")->check(CLI::Range(1, 1 << 20));
  add_format_option(*command, flags->format,
                    "What to make of the file, which may also be a scenario: a scenario, or a job of another program");
  add_common_options(*command, flags->common, false);
  command->callback([flags, &action] { action = [flags] { return import(*flags); }; });
}

}  // namespace tandem
