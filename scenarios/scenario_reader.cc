#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/content_hash.h"
#include "scenarios/job.h"
#include "scenarios/named_files.h"
#include "scenarios/parallel_settings.h"
#include "scenarios/scenario.h"
#include "scenarios/workload_reader.h"
#include "strategies/cross_device/cross_device_ops.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSteps = 10'000'000;
constexpr int kMostDevices = 1 << 16;
constexpr int kMostWorkers = 1 << 16;
constexpr const char* kThisMachine = "this machine";

// One that this build lacks is refused when it is run, as not available rather than as a mistake.
struct KnownEngine {
  std::string_view name;
  bool runs_on_gpus;  // of this machine
};
constexpr std::array<KnownEngine, 3> kEngines = {{{"cpu", false}, {"cuda", true}, {"sim", false}}};

bool runs_on_gpus(const std::string& engine) {
  return std::any_of(kEngines.begin(), kEngines.end(),
                     [&](const KnownEngine& known) { return known.name == engine && known.runs_on_gpus; });
}

void check_schema_version(const YamlReader& version) {
  const std::int64_t value = version.whole_number(1, std::numeric_limits<std::int64_t>::max(), 1);
  if (value > 1) version.error(fmt::format("schema version {} is newer than this tandem reads (1)", value));
}

class ScenarioReader {
 public:
  ScenarioReader(std::shared_ptr<const YamlDocument> document, Diagnostics& problems)
      : problems_(problems), root_(*document, problems) {
    scenario_.file = document->file();
    scenario_.document = std::move(document);
  }

  Scenario read() {
    check_schema_version(root_.required("schema_version"));
    scenario_.name = root_.optional("name").text(fs::path(scenario_.file).stem().string());
    scenario_.description = root_.optional("description").text();
    scenario_.workload = read_workload(root_.required("workload"), folder());
    read_strategy(root_.optional("strategy"));
    read_engine(root_.optional("engine"));
    read_topology_value(root_.optional("topology"));
    read_devices(root_.optional("devices"));
    check_parallel();
    read_steps();
    read_expectations(root_.optional("expect"));
    root_.finish();
    return std::move(scenario_);
  }

 private:
  fs::path folder() const { return fs::path(scenario_.file).parent_path(); }

  void read_strategy(const YamlReader& map) {
    StrategySettings& strategy = scenario_.strategy;
    const YamlReader name = map.optional("name");
    strategy.name = name.text(strategy.name);
    check_known(name, "strategy", strategy.name, all_strategy_names());
    const YamlReader operations = map.optional("cross_device_ops");
    strategy.cross_device_ops = operations.text(strategy.cross_device_ops);
    if (operations)
      check_known(operations, "cross-device operations", strategy.cross_device_ops, cross_device_ops_names());
    strategy.num_packs = map.optional("num_packs").integer(0, 1000, strategy.num_packs);
    if (const YamlReader bytes = map.optional("bytes_per_pack")) {
      strategy.bytes_per_pack = static_cast<std::int64_t>(bytes.quantity(Dimension::bytes, {.most = 1e15}));
      if (map.has("num_packs")) bytes.error("cannot be given together with 'num_packs'");
    }
    if (const YamlReader placement = map.optional("placement")) {
      strategy.placement = placement.one_of<VariablePlacement>({{"round_robin", VariablePlacement::round_robin},
                                                                {"by_size", VariablePlacement::by_size},
                                                                {"by_hash", VariablePlacement::by_hash}});
      if (!may_have_servers(strategy.name)) {
        placement.error(fmt::format("strategy '{}' keeps no variables on parameter servers", strategy.name));
      }
    }
    read_mesh(map, strategy);
  }

  void check_known(const YamlReader& value, const char* what, const std::string& word,
                   const std::vector<std::string>& known) {
    if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return;
    const std::string nearest = nearest_name(word, known);
    value.error(fmt::format("unknown {} '{}' (one of {}){}", what, word, fmt::join(known, ", "),
                            nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }

  void read_engine(const YamlReader& map) {
    EngineSettings& engine = scenario_.engine;
    const YamlReader name = map.optional("name");
    engine.name = name.text(engine.name);
    std::vector<std::string> known;
    for (const KnownEngine& entry : kEngines) known.emplace_back(entry.name);
    check_known(name, "engine", engine.name, known);
    if (const YamlReader values = map.optional("values")) {
      engine.values = values.one_of<ValueMode>({{"real", ValueMode::real}, {"none", ValueMode::none}});
    }
    if (const YamlReader collectives = map.optional("collectives")) {
      engine.collectives = collectives.one_of<CollectiveFidelity>(
          {{"fluid", CollectiveFidelity::fluid}, {"message", CollectiveFidelity::message}});
    }
    engine.graphs = map.optional("graphs").boolean(engine.graphs);
  }

  void read_topology_value(const YamlReader& value) {
    if (!value) return;
    if (value.is_map()) {
      if (auto topology = read_topology_map(value, scenario_.name)) keep(std::move(*topology));
      return;
    }
    const std::string name = value.text(kThisMachine);
    if (name == kThisMachine) return;
    if (is_file_name(name)) {
      const auto file = existing_file(value, folder());
      if (!file) return;
      scenario_.topology = included(value, [&] { return std::make_shared<const Topology>(read_topology(*file)); });
      return;
    }
    std::vector<std::string> known = catalog_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return keep(make_cluster(name, 1));
    known.emplace_back(kThisMachine);
    value.unknown_word("machine", name, known);
  }

  void keep(Topology topology) { scenario_.topology = std::make_shared<const Topology>(std::move(topology)); }

  void read_devices(const YamlReader& map) {
    const int gpus = scenario_.topology ? static_cast<int>(scenario_.topology->nodes_of(0, NodeKind::gpu).size()) : 0;
    const bool has_gpus = gpus > 0 || (!scenario_.topology && runs_on_gpus(scenario_.engine.name));
    const YamlReader type = map.optional("type");
    scenario_.devices.type =
        type.one_of({{"cpu", DeviceType::cpu}, {"gpu", DeviceType::gpu}}, has_gpus ? DeviceType::gpu : DeviceType::cpu);
    const bool on_gpus = scenario_.devices.type == DeviceType::gpu;
    if (on_gpus && !has_gpus && problems_.empty()) {
      type.error(scenario_.topology ? "the machine of this topology has no GPUs"
                                    : "this machine is simulated by its processor only; name a topology with GPUs");
    }
    const YamlReader per_worker = map.optional("per_worker");
    const bool is_single = scenario_.strategy.name == "one_device";
    scenario_.devices.per_worker = per_worker.integer(1, kMostDevices, on_gpus && !is_single ? std::max(1, gpus) : 1);
    if (is_single && scenario_.devices.per_worker > 1) {
      per_worker.error(fmt::format("strategy 'one_device' uses 1 device, found {}", scenario_.devices.per_worker));
    }
    read_jobs(map);
  }

  void read_jobs(const YamlReader& map) {
    DeviceSettings& devices = scenario_.devices;
    const std::string& strategy = scenario_.strategy.name;
    if (const YamlReader workers = map.optional("workers")) {
      devices.workers = workers.integer(1, kMostWorkers, 1);
      const int machines = scenario_.topology ? scenario_.topology->worker_count() : kMostWorkers;
      if (*devices.workers > 1 && !may_have_workers(strategy)) {
        workers.error(fmt::format("strategy '{}' uses 1 worker, found {}", strategy, *devices.workers));
      } else if (*devices.workers > machines) {
        workers.error(fmt::format("more than the machines of the topology: {}, found {}", machines, *devices.workers));
      }
    }
    devices.chief = map.optional("chief").boolean(false);
    if (const YamlReader servers = map.optional("ps")) {
      devices.ps = servers.integer(0, kMostWorkers, 0);
      if (*devices.ps > 0 && !may_have_servers(strategy)) {
        servers.error(fmt::format("strategy '{}' uses no parameter servers, found {}", strategy, *devices.ps));
      }
    }
  }

  void check_parallel() {
    if (!problems_.empty()) return;
    if (const auto problem = parallel_problem(scenario_)) {
      problems_.add(scenario_.problem_at(problem->path, problem->message));
    }
  }

  void read_steps() {
    const YamlReader steps = root_.required("steps");
    const YamlReader warmup = root_.optional("warmup_steps");
    scenario_.steps = steps.integer(1, kMostSteps, kMostSteps);
    scenario_.warmup_steps = warmup.integer(0, kMostSteps, 0);
    if (scenario_.steps <= scenario_.warmup_steps) {
      warmup.error(
          fmt::format("no step remains to be measured: {} of {} are warm-up", scenario_.warmup_steps, scenario_.steps));
    }
  }

  void read_expectations(const YamlReader& map) {
    Expectations& expect = scenario_.expect;
    const YamlReader accuracy = map.optional("min_test_accuracy");
    const YamlReader loss = map.optional("max_final_loss");
    if (accuracy) expect.min_test_accuracy = accuracy.number({.least = 0, .most = 1});
    if (loss) expect.max_final_loss = loss.number({.above = 0});
    for (const YamlReader& value : {accuracy, loss}) {
      if (value && std::holds_alternative<LayersSettings>(scenario_.workload.kind)) {
        value.error("a workload of kind 'layers' computes no losses and predictions");
      } else if (value && scenario_.engine.values == ValueMode::none) {
        value.error("needs values: real");
      }
    }
    if (const YamlReader time = map.optional("max_step_time"))
      expect.max_step_time_s = time.quantity(Dimension::seconds);
    if (const YamlReader rate = map.optional("min_throughput")) expect.min_throughput = rate.number({.above = 0});
    if (const YamlReader share = map.optional("max_exposed_communication")) {
      expect.max_exposed_communication = share.number({.least = 0, .most = 1});
    }
  }

  Diagnostics& problems_;
  YamlReader root_;
  Scenario scenario_;
};

Scenario read_document(YamlDocument parsed) {
  Diagnostics problems;
  auto document = std::make_shared<const YamlDocument>(std::move(parsed));
  Scenario scenario = ScenarioReader(document, problems).read();
  problems.throw_if_any();
  scenario.hash = content_hash(scenario);
  return scenario;
}

}  // namespace

Scenario load_scenario(const fs::path& path) {
  return read_document(YamlDocument::load(path));
}

Scenario parse_scenario(std::string_view text, const std::string& file) {
  return read_document(YamlDocument::parse(text, file));
}

}  // namespace tandem
