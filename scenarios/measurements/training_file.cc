#include "scenarios/measurements/training_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/engine_info.h"
#include "reports/nccl_tests/nccl_tests_json.h"
#include "scenarios/job/parallel_settings.h"
#include "scenarios/reading/strategy_reader.h"
#include "scenarios/reading/workload_reader.h"
#include "scenarios/scenario/shared_parts.h"
#include "scenarios/scenario/words.h"
#include "strategies/strategies.h"

namespace tandem::validation {
namespace {

constexpr int kMostTrainingDevices = 1 << 20;
constexpr int kMostServers = 4096;

class TrainingReader {
 public:
  explicit TrainingReader(const YamlReader& root) : root_(root) {}

  std::vector<TrainingTable> read() {
    const auto tables = root_.required("tables").list();
    if (tables.empty() && root_.diagnostics().empty()) root_.error("holds no tables");
    std::vector<TrainingTable> result;
    for (const YamlReader& table : tables) result.push_back(read_table(table));
    return result;
  }

 private:
  // Returns a table's own entry, or else the file's.
  YamlReader find(const YamlReader& table, std::string_view key) const {
    return table.has(key) ? table.optional(key) : root_.optional(key);
  }

  static WorkloadSettings read_own_workload(const YamlReader& reader) {
    SharedParts parts;
    return read_workload(reader, std::filesystem::path(reader.file()).parent_path(), parts);
  }

  TrainingTable read_table(const YamlReader& reader) {
    TrainingTable table;
    const YamlReader entry = find(reader, "topology");
    if (entry.is_map() && entry.has("lacks")) table.lacks = entry.required("lacks").text();
    if (!entry.is_map()) table.lacks = "a 'topology'";
    if (table.lacks.empty() && !reader.has("workload")) table.lacks = "a 'workload'";
    if (!table.lacks.empty()) return table;
    const YamlReader source = root_.optional("source");
    if (source.is_map() && source.has("title")) table.source = source.required("title").text();
    table.unit = find(reader, "unit").text("examples/s");
    table.workload = read_own_workload(reader.required("workload"));
    table.strategy = find(reader, "strategy").text(std::string(default_strategy_name()));
    check_known(find(reader, "strategy"), "strategy", table.strategy, strategy_names());
    read_servers(reader, table);
    for (const YamlReader& row : reader.required("rows").list()) read_row(row, entry, table);
    if (table.rows.empty() && reader.diagnostics().empty()) reader.error("holds no rows");
    return table;
  }

  static void read_servers(const YamlReader& reader, TrainingTable& table) {
    const YamlReader servers = reader.optional("parameter_servers");
    table.parameter_servers = servers.integer(1, kMostServers, 0);
    table.devices_per_worker = reader.optional("devices_per_worker").integer(1, kMostTrainingDevices, 1);
    table.updates = updates_of(reader.optional("updates"));
    if (table.parameter_servers == 0) {
      for (const char* key : {"devices_per_worker", "updates"}) {
        if (const YamlReader entry = reader.optional(key)) entry.error("is for 'parameter_servers'");
      }
    }
    const auto known = strategy_names();
    if (std::count(known.begin(), known.end(), table.strategy) == 0) return;
    const ServerUse use = strategy_info(table.strategy).parameter_servers;
    if (table.parameter_servers > 0 && use == ServerUse::none) {
      servers.error(fmt::format("strategy '{}' has no parameter servers", table.strategy));
    } else if (table.parameter_servers == 0 && use == ServerUse::required) {
      reader.error(fmt::format("strategy '{}' needs 'parameter_servers'", table.strategy));
    }
  }

  static void read_row(const YamlReader& reader, const YamlReader& entry, TrainingTable& table) {
    TrainingTable::Row row;
    row.place = {.line = reader.line(), .column = reader.column()};
    row.name = reader.optional("system").text();
    row.devices = reader.required("devices").integer(1, kMostTrainingDevices, 1);
    row.throughput = reader.required("throughput").number_within(kRates);
    const int nodes = reader.optional("nodes").integer(1, kMostTrainingDevices, 1);
    read_peak(reader, row);
    if (!reader.diagnostics().empty()) return;
    const int per_worker = table.devices_per_worker;
    if (row.devices > per_worker && row.devices % per_worker != 0) {
      reader.error(fmt::format("{} devices are not divided by workers of {}", row.devices, per_worker));
      return;
    }
    const int machines = std::max(1, row.devices / per_worker) + table.parameter_servers;
    auto machine = table.parameter_servers > 0 ? read_replay_machine(entry, machines * per_worker, machines)
                                               : read_replay_machine(entry, row.devices, nodes);
    if (!machine) return;
    row.machine = std::move(*machine);
    read_own(reader, table, row);
    table.rows.push_back(std::move(row));
  }

  static void read_peak(const YamlReader& reader, TrainingTable::Row& row) {
    constexpr double kMostMemory = 1e15;
    const YamlReader bytes = reader.optional("peak_memory"), counts = reader.optional("peak_memory_of");
    if (!bytes) {
      if (counts) counts.error("is for a 'peak_memory'");
      return;
    }
    row.peak =
        PublishedPeak{.bytes = static_cast<std::int64_t>(bytes.quantity(Dimension::bytes, {.most = kMostMemory})),
                      .is_reserved = counts.one_of<bool>({{"allocated", false}, {"reserved", true}}, false)};
  }

  // Reads a row's own entries, and checks that they fit its devices.
  static void read_own(const YamlReader& reader, const TrainingTable& table, TrainingTable::Row& row) {
    if (const YamlReader workload = reader.optional("workload")) {
      row.workload = read_own_workload(workload);
    }
    if (const YamlReader strategy = reader.optional("strategy")) row.strategy = read_strategy(strategy);
    if (!(row.workload || row.strategy) || !reader.diagnostics().empty()) return;
    if (const auto problem = parallel_problem(scenario_of(table, row))) {
      reader.error(fmt::format("{}: {}", problem->path, problem->message));
    }
  }

  const YamlReader& root_;
};

}  // namespace

std::vector<TrainingTable> parse_training(std::string_view text, const std::string& file) {
  check_json(text, file);
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  std::vector<TrainingTable> tables = TrainingReader(root).read();
  problems.throw_if_any();
  return tables;
}

Scenario scenario_of(const TrainingTable& table, const TrainingTable::Row& row) {
  Scenario scenario;
  scenario.workload = row.workload.value_or(table.workload);
  if (!row.workload) scenario.workload.batch *= row.devices;
  scenario.name = model_of(scenario.workload);
  scenario.strategy.name = table.strategy;
  if (row.strategy) scenario.strategy = *row.strategy;
  scenario.topology = row.machine.topology;
  scenario.devices.type = DeviceType::gpu;
  scenario.devices.per_worker = row.devices / row.machine.nodes;
  scenario.engine = {.name = std::string(model_engine().name), .values = {}, .collectives = {}};
  scenario.engine.nccl = row.machine.nccl_of_job(scenario.devices.per_worker);
  scenario.devices.workers = row.machine.nodes;
  return scenario;
}

std::string model_of(const WorkloadSettings& workload) {
  const auto* layers = std::get_if<LayersSettings>(&workload.kind);
  return layers == nullptr ? "mlp" : layers->model.name;
}

bool is_training_file(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != text.npos; };
  return has("\"tables\"") && has("\"strategy\"") && !has("\"collective\"");
}

}  // namespace tandem::validation
