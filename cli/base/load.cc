#include "cli/base/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cli/base/phase.h"
#include "engine/launched_job.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/import/import.h"
#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string nearest_file(const fs::path& wanted) {
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename() != wanted.filename()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string name = nearest_name(wanted.filename().string(), names);
  return name.empty() || !wanted.has_parent_path() ? name : (folder / name).string();
}

constexpr int kMostUsualMachines = 4096;

std::vector<ScenarioSetting> settings_of(const std::vector<std::string>& words) {
  std::vector<ScenarioSetting> settings;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    settings.push_back({"--set " + word, word.substr(0, equals), word.substr(equals + 1)});
  }
  return settings;
}

Scenario scenario_of_standard_input(const std::vector<ScenarioSetting>& settings) {
  const std::string name(kStandardInput);
  if (rank_of_process().count > 1) {
    throw InputError({{.file = name, .path = "", .message = "ranks cannot share it: write the scenario to a file"}});
  }
  return parse_scenario(std::string(std::istreambuf_iterator<char>(std::cin), {}), name, settings);
}

Scenario imported_scenario(const std::shared_ptr<const InputFile>& file, const std::vector<ScenarioSetting>& settings) {
  const Imported imported = import_that_fits(file, {}, "", file->path().parent_path());
  for (const std::string& assumed : imported.assumed) std::cerr << "tandem: assumed: " << shown(assumed) << '\n';
  for (const std::string& flag : imported.left_out) std::cerr << "tandem: not modelled: " << shown(flag) << '\n';
  return parse_imported(imported, file->name(), settings, parts_of(file));
}

}  // namespace

void check_exists(const std::string& what, const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw InputError({{.file = file, .path = "", .message = fmt::format("is a folder; expected a {} file", what)}});
  }
  if (fs::exists(file, ignored)) return;
  std::string message = fmt::format("no such {} file", what);
  if (const std::string near = nearest_file(file); !near.empty()) message += fmt::format("; did you mean '{}'?", near);
  throw InputError({{.file = file, .path = "", .message = message}});
}

std::shared_ptr<SharedParts> parts_of(const std::shared_ptr<const InputFile>& file) {
  auto parts = std::make_shared<SharedParts>();
  parts->add(file->path().lexically_normal().string(), file);
  parts->settle(true);
  return parts;
}

Scenario parse_imported(const Imported& imported, const std::string& name, const std::vector<ScenarioSetting>& settings,
                        const std::shared_ptr<const SharedParts>& parts) {
  try {
    return parse_scenario(imported.scenario, name, settings, parts);
  } catch (const InputError& error) {
    throw at_origins(error, name, imported.origins);
  }
}

Imported import_that_fits(const std::shared_ptr<const InputFile>& file, ImportChoices options,
                          const std::string& model_file, const fs::path& folder) {
  if (file->kind() == ImportKind::trace) return import_file(*file, options, model_file);
  const bool leaves_open = file->kind() == ImportKind::hugging_face;
  bool is_free = options.workers == 0 && leaves_open;
  std::vector<std::string> chosen;
  const std::string topology = options.topology;
  const bool is_elsewhere = topology.find_first_of("/.") != std::string::npos && folder != file->path().parent_path();
  if (is_elsewhere) options.topology = fs::absolute(folder / topology).lexically_normal().string();
  bool fits = false;
  std::shared_ptr<const SharedParts> parts = parts_of(file);
  while (true) {
    ImportChoices tried = options;
    tried.predictors = 0;  // blocks of a file that is not yet written, one or two of many
    const Imported imported = import_file(*file, tried, "");
    const Scenario scenario = parse_imported(imported, file->name() + " as a scenario", {}, parts);
    parts = scenario.parts;
    const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
    is_free = is_free && strategy.several_workers && !strategy.has_free_mesh();
    const auto need = memory_need(job_of(scenario));
    fits = !need || need->fits();
    if (!leaves_open || fits) break;
    if (!options.recompute) {
      options.recompute = true;
      chosen.emplace_back("activations are computed again in the backward pass, else they do not fit (--recompute)");
      continue;
    }
    if (!is_free || options.workers >= kMostUsualMachines) break;
    options.workers = 2 * scenario.topology->worker_count();
  }
  if (is_free && options.workers > 0) {
    chosen.push_back(fmt::format("{} machines, the {} (--workers)", options.workers,
                                 fits ? "fewest that it fits" : "most that are tried"));
  }
  options.topology = topology;
  options.chosen = std::move(chosen);
  return import_file(*file, options, model_file);
}

Scenario scenario_from(const std::string& file, const std::vector<std::string>& words) {
  const std::vector<ScenarioSetting> settings = settings_of(words);
  if (is_standard_input(file)) return scenario_of_standard_input(settings);
  check_exists("scenario", file);
  const Phase phase("read " + file);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return load_scenario(file, settings);  // a pipe
  const auto opened = std::make_shared<const InputFile>(file);
  if (opened->kind() != ImportKind::scenario) return imported_scenario(opened, settings);
  return parse_scenario(opened->text(), file, settings);
}

std::shared_ptr<const Topology> topology_from(const std::string& file, const CommonOptions& common,
                                              const ImportOptions& options) {
  if (file.empty()) return nullptr;
  check_exists("topology", file);
  const Phase phase("read " + file);
  ImportedTopology imported = import_topology(file, options);
  print_notes(imported.notes, common);
  return std::make_shared<const Topology>(std::move(imported.topology));
}

ImportedTopology topology_named(const std::string& name_or_file, const ImportOptions& options) {
  const bool is_file = name_or_file.find_first_of("/.") != std::string::npos;
  const std::vector<std::string> known = catalog_names();
  if (!is_file && std::find(known.begin(), known.end(), name_or_file) != known.end()) {
    return {load_catalog_node(name_or_file), notes_of_unused(options)};
  }
  std::error_code ignored;
  if (!is_file && !fs::exists(name_or_file, ignored)) {
    const std::string near = nearest_name(name_or_file, known);
    throw InputError({{.file = name_or_file,
                       .path = "",
                       .message = "neither a machine of the catalog nor a file" +
                                  (near.empty() ? "" : fmt::format("; did you mean '{}'?", near))}});
  }
  check_exists("topology", name_or_file);
  return import_topology(name_or_file, options);
}

void print_notes(const std::vector<std::string>& notes, const CommonOptions& common) {
  if (common.quiet) return;
  for (const std::string& note : notes) std::cerr << "note: " << shown(note) << "\n";
}

}  // namespace tandem
