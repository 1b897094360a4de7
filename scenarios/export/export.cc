#include "scenarios/export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "scenarios/export/compared_jobs.h"
#include "scenarios/export/job_writer.h"
#include "scenarios/export/transformer_of.h"
#include "scenarios/import/import.h"
#include "scenarios/job/parallel_settings.h"
#include "scenarios/job/tasks.h"
#include "scenarios/reading/scenario_document.h"
#include "topologies/base/shown.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct JobProgram {
  JobForm form = JobForm::megatron;
  std::string_view word, name, file;  // of what is read back
  std::string (*write)(const JobToWrite& job, const std::vector<std::string>& comments) = nullptr;
};
constexpr std::array kJobPrograms{
    JobProgram{JobForm::megatron, "megatron", "Megatron-LM", "written.sh", megatron_script},
    JobProgram{JobForm::torchtitan, "torchtitan", "torchtitan", "written.toml", titan_toml}};

const JobProgram& program_of(JobForm form) {
  return *std::ranges::find(kJobPrograms, form, &JobProgram::form);
}

// Throws InputError for a scenario that is no model which a strategy divides.
JobToWrite job_to_write(const Scenario& scenario, const JobProgram& program) {
  const auto refuse = [&scenario](std::string_view key, std::string message) {
    throw InputError({scenario.problem_at(key, std::move(message))});
  };
  const auto* const layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers == nullptr)
    refuse("workload.kind", fmt::format("{} trains tables of layers (kind: layers)", program.name));
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  if (!strategy.division || strategy.is_registered) {
    refuse("strategy.name", fmt::format("{} has no strategy '{}'; it has what mesh and fully_sharded do (`tandem plan` "
                                        "with --strategies mesh,fully_sharded)",
                                        program.name, scenario.strategy.name));
  }
  if (const auto problem = parallel_problem(scenario)) refuse(problem->path, problem->message);
  if (std::ranges::any_of(layers->model.layers, [](const Layer& layer) { return layer.adapter_rank > 0; }))
    refuse("workload.lora", fmt::format("{} has no arguments for adapters", program.name));
  auto model = transformer_of(layers->model);
  if (!model) {
    refuse("workload.model",
           fmt::format("'{}' is no transformer of equal kinds of blocks, whose sizes {} could be given",
                       layers->model.name, program.name));
  }
  return {.scenario = scenario, .layers = *layers, .layout = layout_of(scenario), .model = std::move(*model)};
}

// What the written job becomes when it is read, on the machines of the scenario.
struct ReadBack {
  Scenario scenario{};
  std::vector<std::string> left_out{};
};

ReadBack read_back(const Scenario& given, const JobProgram& program, const std::string& text) {
  const fs::path path = fs::path(given.file).parent_path() / program.file;
  const auto file = std::make_shared<const InputFile>(InputFile::of_text(path, text));
  const Imported imported = import_file(
      *file, {.devices = given.devices.per_worker, .workers = static_cast<int>(training_workers(given))}, "");
  SharedParts parts;
  parts.add(path.lexically_normal().string(), file);
  parts.settle(true);
  const auto document = std::make_shared<const YamlDocument>(YamlDocument::parse(imported.scenario, path.string()));
  std::vector<ScenarioSetting> settings;
  const YamlNode* const devices = given.document ? node_at(given.document->root(), "devices") : nullptr;
  if (devices != nullptr) settings.push_back({std::string(program.file), "devices", text_of(*devices)});
  return {read_scenario_document(with_settings(document, settings), parts, given.topology), imported.left_out};
}

ReadBack read_back_or_refuse(const Scenario& given, const JobProgram& program, const std::string& text) {
  try {
    return read_back(given, program, text);
  } catch (const InputError& error) {
    const Diagnostic& first = error.diagnostics().front();
    const std::string what = first.path.empty() ? first.message : first.path + ": " + first.message;
    throw InputError(
        {given.problem_at("strategy", fmt::format("as a job of {}, it is refused: {}", program.name, what))});
  }
}

std::string sentence_of(const JobDifference& one) {
  return fmt::format("{} is {} here, and {} in what tandem reads from the file", one.key, one.given, one.is);
}

void refuse_other_layouts(const Scenario& given, const std::vector<JobDifference>& all, const JobProgram& program) {
  std::vector<Diagnostic> problems;
  for (const JobDifference& one : all) {
    if (!one.is_layout) continue;
    problems.push_back(given.problem_at(
        one.key, fmt::format("{} cannot be given {}; it would have {}", program.name, one.given, one.is)));
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::vector<std::string> head_of(const JobToWrite& job, JobForm form) {
  const Scenario& scenario = job.scenario;
  const int machines = static_cast<int>(training_workers(scenario)), each = scenario.devices.per_worker;
  const std::string name = scenario.name.empty() ? "A scenario" : shown(scenario.name);
  if (form == JobForm::megatron) {
    return {fmt::format("{} as arguments of Megatron-LM, by tandem.", name),
            "Other arguments follow: bash FILE --tokenizer-type ... --data-path ... --train-iters ... --lr ..."};
  }
  return {fmt::format("{} as a job of torchtitan, by tandem.", name),
          fmt::format("Start: torchrun --nnodes {} --nproc-per-node {} -m torchtitan.train --job.config_file FILE",
                      machines, each)};
}

}  // namespace

ParallelOptions layout_of(const Scenario& scenario) {
  ParallelOptions layout = parallel_options(scenario);
  const auto* const layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers != nullptr) layout.micro_batches *= layers->gradient_accumulation_steps;
  if (strategy_info(scenario.strategy.name).division->axis == &ParallelOptions::data) layout.shard_parameters = true;
  return layout;
}

const std::vector<std::pair<std::string, JobForm>>& job_forms() {
  static const std::vector<std::pair<std::string, JobForm>> kForms = [] {
    std::vector<std::pair<std::string, JobForm>> all;
    for (const JobProgram& one : kJobPrograms) all.emplace_back(one.word, one.form);
    return all;
  }();
  return kForms;
}

ExportedJob export_job(const Scenario& scenario, JobForm form) {
  const JobProgram& program = program_of(form);
  const JobToWrite job = job_to_write(scenario, program);
  const ReadBack back = read_back_or_refuse(scenario, program, program.write(job, {}));
  const std::vector<JobDifference> differences = job_differences(scenario, back.scenario);
  refuse_other_layouts(scenario, differences, program);
  ExportedJob exported;
  for (const JobDifference& one : differences) exported.not_said.push_back(sentence_of(one));
  std::vector<std::string> comments = head_of(job, form);
  for (const std::string& one : exported.not_said) comments.push_back("not said: " + shown(one));
  for (const std::string& one : back.left_out) comments.push_back("not modelled: " + shown(one));
  exported.text = program.write(job, comments);
  return exported;
}

}  // namespace tandem
