#include "scenarios/reading/scenario_flags.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "scenarios/import/base/yaml_writer.h"
#include "scenarios/job/job.h"
#include "scenarios/job/launch.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/scenario/words.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

bool is_other_engine(const Scenario& scenario, const ScenarioFlags& flags) {
  return !flags.engine.empty() && flags.engine != scenario.engine.name;
}

// The flags as changes of the scenario's document.
class FlagSettings {
 public:
  FlagSettings(const Scenario& scenario, const ScenarioFlags& flags) : scenario_(scenario), flags_(flags) {}

  std::vector<ScenarioSetting> all() {
    if (is_other_engine(scenario_, flags_)) set_engine();
    set("--values", "engine.values", flags_.values);
    set("--collectives", "engine.collectives", flags_.collectives);
    for (const auto& [variable, value] : flags_.nccl) {
      settings_.push_back({fmt::format("--nccl {}={}", variable, value), "engine.nccl." + variable, yaml_text(value),
                           "--nccl " + variable});
    }
    if (flags_.graphs) settings_.push_back({"--graphs", "engine.graphs", "true", "--graphs"});
    if (!flags_.symmetry) settings_.push_back({"--no-symmetry", "engine.symmetry", "off", "--no-symmetry"});
    if (!flags_.steady_state) {
      settings_.push_back({"--no-steady-state", "engine.steady_state", "off", "--no-steady-state"});
    }
    set("--cross-device-ops", "strategy.cross_device_ops", flags_.cross_device_ops);
    set_devices();
    set("--workers", "devices.workers", flags_.workers);
    set("--steps", "steps", flags_.steps);
    return std::move(settings_);
  }

 private:
  bool is_stated(const std::string& path) const { return node_at(scenario_.document->root(), path) != nullptr; }

  void set(const std::string& flag, const std::string& path, const std::string& value) {
    if (!value.empty()) settings_.push_back({flag + " " + value, path, value, flag});
  }

  // If another engine is chosen, only those of the scenario's engine options are kept that mean the same on every
  // engine.
  void set_engine() {
    const std::string flag = "--engine", name = flag + " " + flags_.engine;
    settings_.push_back({name, "engine.name", flags_.engine, flag});
    std::vector<const char*> left_out{"engine.values", "engine.collectives", "engine.nccl", "engine.symmetry",
                                      "engine.steady_state"};
    if (!engine_info(flags_.engine).graphs) left_out.push_back("engine.graphs");
    for (const char* key : left_out) {
      if (is_stated(key)) settings_.push_back({name, key, "~", flag});
    }
  }

  // What the scenario does not state of its devices follows from its own engine and topology.
  void set_devices() {
    set("--device-type", "devices.type", flags_.device_type);
    set("--replicas", "devices.per_worker", flags_.replicas);
    const DeviceType type = device_type_for(scenario_, flags_);
    const bool is_other = is_other_engine(scenario_, flags_);
    if (!is_other && !flags_.topology && type == scenario_.devices.type) return;
    const std::string by = is_other ? "--engine " + flags_.engine : flags_.topology ? "--topology" : "--device-type";
    const auto keep = [&](const char* path, const std::string& value) { settings_.push_back({by, path, value}); };
    const bool is_same_type = type == scenario_.devices.type && is_stated("devices.type");
    if (flags_.device_type.empty() && !is_same_type) keep("devices.type", word_of(device_type_words(), type));
    if (flags_.replicas.empty() && !is_stated("devices.per_worker")) {
      keep("devices.per_worker", std::to_string(scenario_.devices.per_worker));
    }
  }

  const Scenario& scenario_;
  const ScenarioFlags& flags_;
  std::vector<ScenarioSetting> settings_;
};

Scenario with_settings(const Scenario& scenario, const std::vector<ScenarioSetting>& settings,
                       const std::shared_ptr<const Topology>& topology) {
  if (settings.empty() && !topology) return scenario;
  auto parts = scenario.parts ? std::make_shared<SharedParts>(*scenario.parts) : std::make_shared<SharedParts>();
  Scenario changed = read_scenario_document(with_settings(scenario.document, settings), *parts, topology);
  changed.hash = scenario.hash;
  changed.parts = std::move(parts);
  for (const ScenarioSetting& one : settings) changed.flags[one.path] = one.flag;
  return changed;
}

}  // namespace

Scenario with_flags(const Scenario& scenario, const ScenarioFlags& flags) {
  std::vector<ScenarioSetting> settings = FlagSettings(scenario, flags).all();
  Scenario changed = with_settings(scenario, settings, flags.topology);
  const std::vector<ScenarioSetting> of_launch = settings_of_launch(changed, flags.workers);
  if (!of_launch.empty()) {
    settings.insert(settings.end(), of_launch.begin(), of_launch.end());
    changed = with_settings(scenario, settings, flags.topology);
  }
  if (changed.devices.workers != scenario.devices.workers && flags.workers.empty()) {
    changed.notes.push_back(fmt::format("{} workers, one a rank of the launch; the scenario has {}",
                                        training_workers(changed), training_workers(scenario)));
  }
  if (changed.devices.type != scenario.devices.type && flags.device_type.empty()) {
    changed.notes.push_back("computed on GPUs, the default of engine '" + changed.engine.name +
                            "'; --device-type cpu computes on the scenario's CPU devices");
  }
  return changed;
}

DeviceType device_type_for(const Scenario& scenario, const ScenarioFlags& flags) {
  for (const auto& [word, type] : device_type_words()) {
    if (word == flags.device_type) return type;
  }
  const bool is_for_gpus =
      is_other_engine(scenario, flags) && engine_info(flags.engine).default_device == DeviceType::gpu;
  return is_for_gpus ? DeviceType::gpu : scenario.devices.type;
}

}  // namespace tandem
