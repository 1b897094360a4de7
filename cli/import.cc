#include "scenarios/import/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/load.h"
#include "cli/output.h"
#include "scenarios/activations.h"
#include "scenarios/device_memory.h"
#include "scenarios/scenario.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
  CommonOptions common;
  std::string file;
  ImportChoices options;
};

// "scenario.yaml" has its model in "scenario.model.yaml".
fs::path model_beside(const fs::path& scenario) {
  return scenario.parent_path() / (scenario.stem().string() + ".model.yaml");
}

// What the scenario needs, by the model of its memory.
std::string needs_text(const Scenario& scenario) {
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  const DType stored = layers.dtype == DType::tf32 ? DType::f32 : layers.dtype;
  const ActivationSettings one{.examples = 1,
                               .dtype = stored,
                               .checkpointing = layers.activation_checkpointing,
                               .keeps_scores = layers.stack.attention != AttentionKernels::flash};
  std::string text = fmt::format("flops of a step: {:.4g}\n",
                                 6 * static_cast<double>(layers.model.forward_macs()) * scenario.workload.batch);
  text += fmt::format("activations that an example keeps: {:.4g} GB\n",
                      static_cast<double>(activation_bytes(layers.model.layers, one)) / 1e9);
  if (const auto need = memory_need(scenario)) text += "a device " + memory_text(*need) + "\n";
  return text;
}

std::string summary_of(const Imported& imported, const Scenario& scenario) {
  std::string text;
  for (const std::string& fact : imported.facts) text += fact + "\n";
  if (std::holds_alternative<LayersSettings>(scenario.workload.kind)) text += needs_text(scenario);
  for (const std::string& assumed : imported.assumed) text += "assumed: " + assumed + "\n";
  for (const std::string& flag : imported.left_out) text += "not modelled: " + flag + "\n";
  return text;
}

int import(const ImportFlags& flags) {
  const bool has_output = !flags.common.output.empty() && flags.common.output != "-";
  const fs::path scenario_file = has_output ? fs::path(flags.common.output) : fs::path(flags.file);
  const fs::path model_file = model_beside(scenario_file);
  const Imported imported =
      import_that_fits(flags.file, flags.options, has_output ? model_file.filename().string() : std::string());
  if (!has_output) {
    const Scenario scenario = parse_scenario(imported.scenario, scenario_file.string());
    std::cout << imported.scenario;
    if (!flags.common.quiet) std::cerr << summary_of(imported, scenario);
    return kOk;
  }
  if (!imported.model.empty()) write_file(model_file.string(), imported.model);
  write_file(scenario_file.string(), imported.scenario);
  const Scenario scenario = load_scenario(scenario_file);
  if (flags.common.quiet) return kOk;
  std::cout << "read " << text_of(imported.kind) << '\n'
            << summary_of(imported, scenario) << "wrote " << scenario_file.string();
  if (!imported.model.empty()) std::cout << " and " << model_file.string();
  std::cout << '\n';
  return kOk;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("import", "Make a scenario of another program's file, and say what that had to assume");
  auto flags = std::make_shared<ImportFlags>();
  ImportChoices& options = flags->options;
  command
      ->add_option(
          "file", flags->file,
          "A config.json of Hugging Face, or arguments of Megatron-LM: a shell script or the YAML of its tests")
      ->required();
  command->add_option("--sequence-length", options.tokens, "Tokens of a sequence")->check(CLI::Range(1, 1 << 24));
  command->add_option("--batch", options.batch, "Sequences, or images, of a step on all devices")
      ->check(CLI::Range(1, 1 << 28));
  command->add_option("--dtype", options.dtype, "The type that layers compute in")
      ->check(CLI::IsMember({"f32", "tf32", "f16", "bf16"}));
  command->add_option("--optimizer", options.optimizer, "The optimizer")
      ->check(CLI::IsMember({"sgd", "momentum", "adam", "lamb"}));
  command->add_flag("--recompute", options.recompute, "Compute blocks again in the backward pass");
  command->add_option("--strategy", options.strategy, "A strategy by name");
  command->add_option("--topology", options.topology, "A machine of the catalog, or a file beside the scenario");
  command->add_option("--devices", options.devices, "GPUs of each machine")->check(CLI::Range(1, 1 << 20));
  command->add_option("--workers", options.workers, "Machines")->check(CLI::Range(1, 1 << 20));
  add_common_options(*command, flags->common, false);
  command->callback([flags, &action] { action = [flags] { return import(*flags); }; });
}

}  // namespace tandem
