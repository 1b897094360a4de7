#include "cli/plan/plan_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <optional>

#include "cli/base/load.h"
#include "cli/base/phase.h"
#include "cli/plan/plan_machines.h"
#include "scenarios/import/import.h"
#include "scenarios/job/tasks.h"
#include "scenarios/plan/plan_space.h"
#include "scenarios/plan/point_text.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/reading/sweep_settings.h"
#include "scenarios/scenario/shared_parts.h"
#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "topologies/base/shown.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/joined_machines.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kUsualGpus = 8;  // of a machine, where none is named
constexpr const char* kUsualSpace = "the usual space";

// Sizes of a mesh that suit most models: as many replicas as divide the batch, the devices of each along `tensor`
// within a machine, and stages for what is left.
struct AnyMesh {
  std::int64_t replicas = 1, tensor = 1, pipeline = 1;

  AnyMesh(std::int64_t batch, std::int64_t machines, std::int64_t per_machine)
      : replicas(std::gcd(batch, machines * per_machine)) {
    const std::int64_t devices = machines * per_machine / replicas;
    tensor = std::gcd(devices, per_machine);
    pipeline = devices / tensor;
  }
};

class PlanScenario {
 public:
  PlanScenario(const PlanQuestion& question, const CommonOptions& common) : question_(question), common_(common) {}

  ScenarioToPlan scenario() {
    check_strategies();
    const bool is_file = !is_standard_input(question_.file) && fs::is_regular_file(question_.file);
    const auto opened = is_file ? std::make_shared<const InputFile>(question_.file) : nullptr;
    const bool is_imported = opened && opened->kind() != ImportKind::scenario;
    Scenario scenario = is_imported ? imported(opened) : of_scenario();
    return {std::move(scenario), has_own_strategy_, std::move(origins_)};
  }

 private:
  using Settings = std::vector<ScenarioSetting>;

  void check_strategies() const {
    for (const std::string& name : question_.strategies) {
      try {
        strategy_info(name);
      } catch (const ValueError& error) {
        refuse_option("--strategies", error.what());
      }
    }
  }

  void check_workers(int workers) const {
    for (const std::string& name : question_.strategies) {
      if (workers > 1 && !strategy_info(name).several_workers)
        refuse_option("--strategies", fmt::format("'{}' runs on one machine, not on {}", name, workers));
    }
  }

  // The usual space, with the machines that the question leaves open.
  std::string space_for(const Scenario& base, const std::vector<NamedTopology>& named, const Machines& machines) const {
    SpaceChoices choices{.strategies = question_.strategies, .machines = machine_choices(question_, named)};
    if (choices.machines.empty() && !machines.workers.empty()) {
      choices.machines.push_back({.per_worker = base.devices.per_worker,
                                  .workers = machines.workers,
                                  .joined = base.topology ? joined_machines(*base.topology) : 1});
    }
    return usual_space(base, choices);
  }

  bool has_mesh() const {
    return std::ranges::any_of(question_.strategies,
                               [](const std::string& name) { return strategy_info(name).has_free_mesh(); });
  }

  // Plans are about steps, beside which a job evaluates.
  Scenario without_evaluation(const Scenario& given) const {
    if (!given.evaluation) return given;
    const auto is_of_evaluation = [](const SweepAxis& axis) { return axis.path.starts_with("evaluation"); };
    if (given.sweep && std::ranges::any_of(given.sweep->axes, is_of_evaluation)) {
      throw InputError({given.problem_at("sweep", "plans do not count evaluations: leave out their values")});
    }
    if (!common_.quiet) std::cerr << "tandem: plans do not count `evaluation:`\n";
    return changed_scenario(given, {{"tandem plan", "evaluation", "~"}});
  }

  Scenario of_scenario() {
    const Scenario given = without_evaluation(scenario_from(question_.file, question_.settings));
    const std::vector<NamedTopology> named =
        named_topologies(question_, given.devices.type == DeviceType::gpu, common_);
    const Topology* topology = named.empty() ? given.topology.get() : &named.front().topology;
    const Machines machines = machines_for(question_, topology != nullptr ? gpus_of(*topology) : 0);
    Settings settings;
    add_machines(given, named, machines, settings);
    add_workload(settings);
    const bool is_as_given = settings.empty() && question_.strategies.empty() && !question_.usual_space;
    add_given(settings);  // again: they change what the options give
    if (!question_.space.empty()) {
      settings.push_back({question_.space, "sweep", space_of_file()});
      return changed_scenario(given, settings);
    }
    if (given.sweep && is_as_given) return given;
    if (given.sweep && !question_.usual_space && !common_.quiet) {
      std::cerr << "tandem: the usual space is searched, not the scenario's `sweep:`, which --space searches\n";
    }
    check_workers(machines.workers.empty() ? training_workers(given) : machines.workers.front());
    const Scenario base = base_of(given, machines, settings);
    settings.push_back({kUsualSpace, "sweep", space_for(base, named, machines)});
    return changed_scenario(given, settings);
  }

  // Those of --set.
  void add_given(Settings& settings) const {
    for (const std::string& word : question_.settings) {
      const std::size_t equals = word.find('=');
      settings.push_back({"--set " + word, word.substr(0, equals), word.substr(equals + 1)});
    }
  }

  void add_workload(Settings& settings) const {
    const auto add = [&](const std::string& option, const char* path, const std::string& value) {
      settings.push_back({option, path, value});
    };
    if (question_.batch > 0)
      add(fmt::format("--batch {}", question_.batch), "workload.batch", std::to_string(question_.batch));
    if (!question_.precision.empty())
      add("--precision " + question_.precision, "workload.precision",
          fmt::format("{{compute: {}}}", question_.precision));
    if (question_.tokens > 0)
      add(fmt::format("--sequence-length {}", question_.tokens), "workload.sizes.tokens",
          std::to_string(question_.tokens));
  }

  void add_machines(const Scenario& given, const std::vector<NamedTopology>& named, const Machines& machines,
                    Settings& settings) const {
    const int workers = machines.workers.empty() ? 0 : machines.workers.back();
    if (!named.empty()) {
      const std::string option = "--topology " + question_.topologies.front();
      settings.push_back({option, "topology", topology_text(named, workers > 0 ? workers : training_workers(given))});
      if (gpus_of(named.front().topology) > 0) settings.push_back({option, "devices.type", "~"});
    }
    if (workers == 0) return;
    const std::string option = "--devices " + question_.devices;
    if (named.empty() && node_at(given.document->root(), "topology.cluster") != nullptr)
      settings.push_back({option, "topology.cluster.workers", std::to_string(workers)});
    settings.push_back({option, "devices.workers", std::to_string(workers)});
    settings.push_back({option, "devices.per_worker", std::to_string(machines.per_machine)});
  }

  // A file of one machine is one of several that are alike. Of several machines the first, as many as of any.
  std::string topology_text(const std::vector<NamedTopology>& named, int workers) const {
    const NamedTopology& first = named.front();
    if (named.size() > 1) workers = most_workers(question_, named);
    const bool is_file = !is_of_catalog(first.name);
    if (is_file && named.size() == 1 && (first.topology.worker_count() > 1 || workers == 1))
      return fmt::format("\"{}\"", first.name);
    return fmt::format("{{cluster: {{node: \"{}\", workers: {}}}}}", first.name, workers);
  }

  // The scenario without its sweep. A strategy that the question leaves no room for becomes one that can be; adds what
  // makes it so to the settings.
  Scenario base_of(const Scenario& given, const Machines& machines, Settings& settings) {
    const std::vector<std::string>& names = question_.strategies;
    if (!names.empty() && !has_mesh() && std::ranges::find(names, given.strategy.name) == names.end())
      choose_first(settings);
    const auto without_sweep = [](Settings all) {
      all.push_back({kUsualSpace, "sweep", "~"});
      return all;
    };
    try {
      return changed_scenario(given, without_sweep(settings));
    } catch (const InputError&) {
      if (!names.empty() && !has_mesh()) throw;
      for (const bool keeps_schedule : {true, false}) {
        Settings more = settings;
        add_mesh(given, machines, keeps_schedule, more);
        try {
          Scenario base = changed_scenario(given, without_sweep(more));
          settings = std::move(more);
          has_own_strategy_ = false;
          return base;
        } catch (const InputError&) {
        }
      }
      throw;
    }
  }

  void choose_first(Settings& settings) {
    const std::string& name = question_.strategies.front();
    settings.push_back({"--strategies " + name, "strategy", fmt::format("{{name: {}}}", name)});
    has_own_strategy_ = false;
  }

  void add_mesh(const Scenario& given, const Machines& machines, bool keeps_schedule, Settings& settings) const {
    const bool is_as_given = machines.workers.empty();
    const AnyMesh mesh(question_.batch > 0 ? question_.batch : given.workload.batch,
                       is_as_given ? training_workers(given) : machines.workers.back(),
                       is_as_given ? given.devices.per_worker : machines.per_machine);
    const auto add = [&](const char* key, const std::string& value) {
      settings.push_back({kUsualSpace, std::string("strategy.") + key, value});
    };
    if (!strategy_info(given.strategy.name).has_free_mesh())
      settings.push_back({kUsualSpace, "strategy", fmt::format("{{name: {}}}", mesh_strategy())});
    add("data", std::to_string(mesh.replicas));
    add("tensor", std::to_string(mesh.tensor));
    add("pipeline", std::to_string(mesh.pipeline));
    add("stage_blocks", mesh.pipeline > 1 ? "balanced" : "~");
    for (const char* key : {"context", "expert", "expert_tensor", "virtual_stages", "micro_batches"}) {
      add(key, "~");
    }
    if (!keeps_schedule) add("schedule", "~");
  }

  Scenario imported(const std::shared_ptr<const InputFile>& opened) {
    const std::vector<NamedTopology> named = named_topologies(question_, true, common_);
    ImportChoices choices{.tokens = question_.tokens,
                          .batch = question_.batch,
                          .precision = question_.precision,
                          .topology = named.empty() ? "" : named.front().name};
    const Machines machines = machines_for(question_, named.empty() ? kUsualGpus : gpus_of(named.front().topology));
    if (!machines.workers.empty()) {
      choices.workers = machines.workers.back();
      choices.devices = machines.per_machine;
    }
    check_workers(machines.workers.empty() ? 1 : machines.workers.front());
    const bool is_model = opened->kind() == ImportKind::hugging_face;
    if (is_model) choose_strategy(choices);
    const Imported imported = import_file(*opened, choices, "");
    if (!common_.quiet) {
      for (const std::string& assumed : imported.assumed) std::cerr << "tandem: assumed: " << shown(assumed) << '\n';
      for (const std::string& flag : imported.left_out) std::cerr << "tandem: not modelled: " << shown(flag) << '\n';
    }
    origins_ = imported.origins;
    Settings settings;
    if (named.size() > 1) {  // the cluster has as many machines as any choice needs, of which the first uses its own
      const std::string option = "--topology " + question_.topologies.front();
      settings.push_back({option, "topology.cluster.workers", std::to_string(most_workers(question_, named))});
      settings.push_back({option, "devices.workers", std::to_string(machines.workers.back())});
      settings.push_back({option, "devices.per_worker", std::to_string(machines.per_machine)});
    }
    add_given(settings);
    if (!is_model && !question_.strategies.empty() && !has_mesh()) choose_first(settings);
    const Scenario base = parse_imported(imported, opened->name(), settings, parts_of(opened));
    if (question_.space.empty()) {
      settings.push_back({kUsualSpace, "sweep", space_for(base, named, machines)});
    } else {
      settings.push_back({question_.space, "sweep", space_of_file()});
    }
    return parse_imported(imported, opened->name(), settings, base.parts);
  }

  // The strategy of a model file, for which sizes are chosen that its batch allows.
  void choose_strategy(ImportChoices& choices) {
    has_own_strategy_ = false;
    choices.strategy = question_.strategies.empty() || has_mesh() ? mesh_strategy() : question_.strategies.front();
    if (choices.batch == 0 || choices.workers == 0 || choices.strategy != mesh_strategy()) return;
    const AnyMesh mesh(choices.batch, choices.workers, choices.devices);
    choices.tensor = static_cast<int>(mesh.tensor);
    choices.pipeline = static_cast<int>(mesh.pipeline);
  }

  // The strategy whose sizes are free, which models of other programs usually have.
  static std::string mesh_strategy() {
    for (const std::string& name : strategy_names()) {
      const StrategyInfo& info = strategy_info(name);
      if (info.has_free_mesh() && !info.is_registered) return name;
    }
    return "";
  }

  std::string space_of_file() const {
    check_exists("space", question_.space);
    const YamlDocument document = YamlDocument::load(question_.space);
    const YamlNode* sweep = node_at(document.root(), "sweep");
    if (sweep == nullptr) refuse_option(question_.space, "has no `sweep:` (values, where) to search");
    return yaml_line(*sweep);
  }

  const PlanQuestion& question_;
  const CommonOptions& common_;
  bool has_own_strategy_ = true;
  std::vector<Origin> origins_{};
};

}  // namespace

ScenarioToPlan scenario_to_plan(const PlanQuestion& question, const CommonOptions& common) {
  const Phase phase("read " + question.file);
  return PlanScenario(question, common).scenario();
}

}  // namespace tandem
