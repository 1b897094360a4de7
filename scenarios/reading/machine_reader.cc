#include "scenarios/reading/machine_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/scenario/named_files.h"
#include "scenarios/scenario/shared_parts.h"
#include "scenarios/scenario/words.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDevices = 1 << 20;
constexpr int kMostWorkers = 1 << 20;
constexpr const char* kThisMachine = "this machine";

int gpus_of(const Scenario& scenario) {
  return scenario.topology ? static_cast<int>(scenario.topology->nodes_of(0, NodeKind::gpu).size()) : 0;
}

// Returns the type of device that a job computes on if its scenario states none.
DeviceType usual_device(const Scenario& scenario) {
  if (scenario.topology) return gpus_of(scenario) > 0 ? DeviceType::gpu : DeviceType::cpu;
  const EngineInfo* engine = find_engine(scenario.engine.name);
  return engine != nullptr ? engine->default_device : DeviceType::cpu;
}

// Returns why there are no GPUs in the topology and on this machine, as far as is known before the run, or nothing.
std::string why_no_gpus(const Scenario& scenario) {
  if (gpus_of(scenario) > 0) return "";
  const EngineInfo& engine = engine_info(scenario.engine.name);
  if (!engine.needs_topology) {
    const bool has_some = std::ranges::count(engine.device_types, DeviceType::gpu) > 0;
    return has_some ? "" : fmt::format("engine '{}' has no devices of type GPU", engine.name);
  }
  return scenario.topology ? "the machine of this topology has no GPUs"
                           : "this machine is simulated by its processor only; name a topology with GPUs";
}

void read_device_type(const YamlReader& type, Scenario& scenario) {
  scenario.devices.type = type.one_of(device_type_words(), usual_device(scenario));
  if (scenario.devices.type != DeviceType::gpu || !type.diagnostics().empty()) return;
  if (const std::string why = why_no_gpus(scenario); !why.empty()) type.error(why);
}

void read_count(const YamlReader& per_worker, const StrategyInfo* strategy, Scenario& scenario) {
  const bool on_gpus = scenario.devices.type == DeviceType::gpu;
  const bool is_single = strategy != nullptr && strategy->one_device;
  const int usual = on_gpus && !is_single ? std::max(1, gpus_of(scenario)) : 1;
  scenario.devices.per_worker = per_worker.integer(1, kMostDevices, usual);
}

void read_servers(const YamlReader& servers, const StrategyInfo* strategy, Scenario& scenario) {
  if (!servers) return;
  scenario.devices.ps = servers.integer(0, kMostWorkers, 0);
  if (*scenario.devices.ps > 0 && strategy != nullptr && strategy->parameter_servers == ServerUse::none) {
    servers.error(
        fmt::format("strategy '{}' uses no parameter servers, found {}", strategy->name, *scenario.devices.ps));
  }
}

void read_new_topology(const YamlReader& value, Scenario& scenario) {
  const auto keep = [&](Topology topology) {
    scenario.topology = std::make_shared<const Topology>(std::move(topology));
  };
  if (value.is_map()) {
    if (auto topology = read_topology_map(value, scenario.name)) keep(std::move(*topology));
    return;
  }
  const std::string name = value.text(kThisMachine);
  if (name == kThisMachine) return;
  if (is_file_name(name)) {
    const auto file = existing_file(value, fs::path(scenario.file).parent_path());
    if (!file) return;
    scenario.topology = included(value, [&] { return std::make_shared<const Topology>(read_topology(*file)); });
    return;
  }
  std::vector<std::string> known = catalog_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return keep(make_cluster(name, 1));
  known.emplace_back(kThisMachine);
  value.unknown_word("machine", name, known);
}

}  // namespace

EngineSettings read_engine(const YamlReader& map) {
  EngineSettings engine;
  const YamlReader name = map.optional("name");
  engine.name = name.text(engine.name);
  // An engine that this build lacks is refused only when it is run, because it is unavailable, not a mistake.
  if (!engine.name.empty() && find_engine(engine.name) == nullptr) name.error(unknown_engine_text(engine.name));
  if (const YamlReader values = map.optional("values")) {
    engine.values = values.one_of(value_words(), ValueMode::real);
  }
  if (const YamlReader collectives = map.optional("collectives")) {
    engine.collectives = collectives.one_of(fidelity_words(), CollectiveFidelity::fluid);
  }
  for (const auto& [variable, value] : map.optional("nccl").entries()) engine.nccl[variable] = value.text();
  engine.graphs = map.optional("graphs").boolean(engine.graphs);
  if (const YamlReader records = map.optional("records")) {
    engine.records = records.one_of<RecordLevel>(
        {{"all", RecordLevel::all}, {"collectives", RecordLevel::collectives}, {"steps", RecordLevel::steps}});
  }
  engine.symmetry = map.optional("symmetry").one_of<bool>({{"auto", true}, {"off", false}}, engine.symmetry);
  engine.steady_state =
      map.optional("steady_state").one_of<bool>({{"auto", true}, {"off", false}}, engine.steady_state);
  return engine;
}

void read_topology_value(const YamlReader& value, SharedParts& parts, Scenario& scenario) {
  if (!value) return;
  scenario.topology = parts.get<Topology>(scenario.name + ": " + text_of(*value.node()), [&] {
    read_new_topology(value, scenario);
    return scenario.topology;
  });
}

void read_reserved(const YamlReader& map, DeviceSettings& devices) {
  if (!map) return;
  constexpr double kMostBytes = 1e15;
  const YamlReader bytes = map.optional("bytes"), share = map.optional("share");
  devices.reserved_bytes = static_cast<std::int64_t>(bytes.quantity(Dimension::bytes, {.most = kMostBytes}));
  devices.reserved_share = share.number({.above = 0, .most = 1});
  if (map.is_map() && map.has_only({"bytes", "share"}) && !bytes && !share) map.error("needs bytes, share or both");
}

void read_devices(const YamlReader& map, Scenario& scenario) {
  const StrategyInfo* strategy = find_strategy(scenario.strategy.name);
  read_device_type(map.optional("type"), scenario);
  read_count(map.optional("per_worker"), strategy, scenario);
  if (const YamlReader workers = map.optional("workers")) {
    scenario.devices.workers = workers.integer(1, kMostWorkers, 1);
  }
  read_reserved(map.optional("reserved"), scenario.devices);
  scenario.devices.chief = map.optional("chief").boolean(false);
  read_servers(map.optional("ps"), strategy, scenario);
}

}  // namespace tandem
