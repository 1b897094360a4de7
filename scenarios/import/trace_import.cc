#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/import/choices.h"
#include "scenarios/import/import.h"
#include "scenarios/import/models/model_table.h"
#include "scenarios/import/traces/chakra.h"
#include "scenarios/import/traces/retime.h"
#include "scenarios/import/traces/trace.h"
#include "strategies/strategies.h"
#include "topologies/base/error.h"
#include "topologies/readers/catalog.h"
#include "topologies/topology.h"

namespace tandem {
namespace {

constexpr std::string_view kOtherwiseMachine = "hgx-h100";

constexpr std::array kCountedCollectives = {CollectiveKind::all_reduce,     CollectiveKind::reduce,
                                            CollectiveKind::broadcast,      CollectiveKind::all_gather,
                                            CollectiveKind::reduce_scatter, CollectiveKind::all_to_all};

void add_trace_facts(const std::vector<RankTrace>& traces, Imported& imported) {
  for (const RankTrace& trace : traces) {
    const auto fact = [&](const std::string& text) {
      imported.facts.push_back(fmt::format("rank {}: {}", trace.rank, text));
    };
    fact(fmt::format("{} kernels and {} memory operations on {} streams, {:.6f} ms", trace.count(TraceOp::Kind::kernel),
                     trace.count(TraceOp::Kind::memory), trace.streams, static_cast<double>(trace.kernel_ns()) * 1e-6));
    for (const CollectiveKind kind : kCountedCollectives) {
      if (trace.collective_count(kind) == 0) continue;
      fact(fmt::format("{} {}, {} bytes", trace.collective_count(kind), name_of(kind), trace.collective_bytes(kind)));
    }
    const std::int64_t sends = trace.count(TraceOp::Kind::send), receives = trace.count(TraceOp::Kind::receive);
    if (sends + receives > 0) fact(fmt::format("{} sends and {} receives", sends, receives));
    if (trace.recorded_ns > 0)
      fact(fmt::format("recorded {:.6f} ms{}", static_cast<double>(trace.recorded_ns) * 1e-6,
                       trace.steps > 0 ? fmt::format(", {} steps", trace.steps) : ""));
    for (const std::string& note : trace.notes)
      imported.assumed.push_back(fmt::format("rank {}: {}", trace.rank, note));
  }
}

// Returns a strategy for any number of machines. A trace needs no strategy, but a scenario must have one.
std::string strategy_of_traces() {
  for (const std::string& name : strategy_names()) {
    const StrategyInfo& info = strategy_info(name);
    if (info.several_workers && !info.one_device && info.parameter_servers == ServerUse::none && !info.division)
      return name;
  }
  return std::string(default_strategy_name());
}

int devices_of_machine(const std::string& machine) {
  const std::vector<std::string> known = catalog_names();
  if (std::find(known.begin(), known.end(), machine) == known.end()) return 0;
  return static_cast<int>(load_catalog_node(machine).nodes_of(0, NodeKind::gpu).size());
}

// The devices on which a job runs.
struct Machines {
  int workers = 1, devices = 1;  // devices of each worker
  int ranks() const { return workers * devices; }
};

[[noreturn]] void refuse_machines(const RankTrace& trace, const std::string& message) {
  throw InputError({problem_at(trace.file, beginning_of(trace.file), message)});
}

// Returns the machines that `options` ask for, on which the job runs with another number of replicas.
Machines asked_machines(const ImportChoices& options, const RankTrace& trace) {
  const std::int64_t ranks = std::int64_t{options.devices} * options.workers;
  const int size = replica_size(trace);
  const bool is_same = ranks == trace.world;
  if (!is_same && (size == 0 || ranks % size != 0 || ranks < 2 * size || ranks > kMostRanksOfJob)) {
    refuse_machines(trace,
                    fmt::format("cannot be run on {} devices: it was recorded on {}, in replicas of {}, of which "
                                "there must be two at least",
                                ranks, trace.world, std::max(1, size)));
  }
  return {.workers = options.workers, .devices = options.devices};
}

// Returns machines for the recorded ranks: those that `options` describe in part, or as few machines of `most` devices
// as hold all ranks.
Machines recorded_machines(const ImportChoices& options, const RankTrace& trace, int most) {
  const int ranks = trace.world;
  if (options.devices > 0 && ranks % options.devices != 0) {
    refuse_machines(trace,
                    fmt::format("is of a job of {} ranks, which do not fill machines of {} GPUs (--devices): give "
                                "a divisor, or --workers, too, for a job of another size",
                                ranks, options.devices));
  }
  if (options.workers > 0 && ranks % options.workers != 0) {
    refuse_machines(trace,
                    fmt::format("is of a job of {} ranks, which cannot be divided among {} machines (--workers): "
                                "give a divisor, or --devices, too, for a job of another size",
                                ranks, options.workers));
  }
  const int devices = options.devices > 0   ? options.devices
                      : options.workers > 0 ? ranks / options.workers
                      : ranks <= most       ? ranks
                                            : std::gcd(ranks, most);
  return {.workers = ranks / devices, .devices = devices};
}

// Adds the other ranks' files to a single file of Chakra, as ASTRA-sim does: they are in the same folder under the same
// name. If several files are given, other ranks' files are left out with a note.
std::vector<std::filesystem::path> with_other_ranks(const std::vector<std::filesystem::path>& given,
                                                    Imported& imported) {
  const auto first = std::find_if(given.begin(), given.end(), is_chakra_file);
  const bool is_one_job = std::all_of(given.begin(), given.end(), [](const std::filesystem::path& file) {
    return is_chakra_file(file) || trace_kind_of(file) == TraceKind::chakra_groups;
  });
  if (first == given.end() || !is_one_job) return given;
  std::vector<std::filesystem::path> all = files_of_ranks(*first), others;
  std::copy_if(all.begin(), all.end(), std::back_inserter(others), [&](const std::filesystem::path& file) {
    return std::none_of(given.begin(), given.end(), [&](const std::filesystem::path& one) {
      return one.lexically_normal() == file.lexically_normal();
    });
  });
  if (others.empty()) return given;
  const bool is_alone = std::count_if(given.begin(), given.end(), is_chakra_file) == 1;
  imported.assumed.push_back(fmt::format("{} files of other ranks by their names, {} to {}, are {}", others.size(),
                                         others.front().filename().string(), others.back().filename().string(),
                                         is_alone ? "read, too" : "not given and left out"));
  if (!is_alone) return given;
  std::remove_copy_if(given.begin(), given.end(), std::back_inserter(all), is_chakra_file);
  return all;
}

// Returns the number of ranks of a job whose files do not say it; 0 if the options do not say it either.
int ranks_of_choices(const std::filesystem::path& file, const ImportChoices& options) {
  if (options.ranks > 0) return options.ranks;
  const std::int64_t ranks = std::int64_t{options.devices} * std::max(1, options.workers);
  if (ranks <= kMostRanksOfJob) return static_cast<int>(ranks);
  throw InputError(
      {problem_at(file.string(), beginning_of(file),
                  fmt::format("a job has {} ranks at most, found {} (--devices, --workers)", kMostRanksOfJob, ranks))});
}

}  // namespace

Imported import_traces(const std::vector<std::filesystem::path>& given, const ImportChoices& options,
                       const std::filesystem::path& scenario_folder) {
  check_choices(given.front().string(), ImportKind::trace, options);
  Imported imported;
  imported.kind = ImportKind::trace;
  const std::vector<std::filesystem::path> files = with_other_ranks(given, imported);
  imported.ranks = says_ranks(files) ? 0 : ranks_of_choices(files.front(), options);
  const std::shared_ptr<const std::vector<RankTrace>> read = read_traces(files, imported.ranks);
  const std::vector<RankTrace>& traces = *read;
  add_trace_facts(traces, imported);
  const int world = traces.front().world;
  if (static_cast<int>(traces.size()) < world) {
    imported.assumed.push_back(fmt::format("{} of {} ranks have no trace: each does what the nearest one before it did",
                                           world - static_cast<int>(traces.size()), world));
  }
  std::string machine = options.topology.empty() ? machine_with(traces.front().device) : options.topology;
  if (machine.empty()) {
    machine = kOtherwiseMachine;
    const std::string& device = traces.front().device;
    imported.assumed.push_back(device.empty() ? fmt::format("machine {}: the trace names none (--topology)", machine)
                                              : fmt::format("the links of {}: no machine of the catalog has '{}' "
                                                            "(--topology)",
                                                            machine, device));
  } else if (options.topology.empty()) {
    imported.assumed.push_back(
        fmt::format("recorded on {}, which has '{}' (--topology)", machine, traces.front().device));
  }
  const bool is_asked = options.devices > 0 && options.workers > 0;
  const Machines machines = is_asked
                                ? asked_machines(options, traces.front())
                                : recorded_machines(options, traces.front(), std::max(1, devices_of_machine(machine)));
  std::vector<std::string> names;
  for (const std::filesystem::path& file : files) {
    std::error_code ignored;
    const std::filesystem::path folder = scenario_folder.empty() ? std::filesystem::path(".") : scenario_folder;
    const std::filesystem::path relative = std::filesystem::relative(file, folder, ignored);
    names.push_back(yaml_text((relative.empty() ? file : relative).string()));
  }
  YamlMap workload;
  workload.set("kind", "trace").list("files", names);
  if (imported.ranks > 0) workload.set("ranks", imported.ranks);
  const RankTrace& recorded = traces.front();
  if (machines.ranks() != recorded.world) workload.set("replicas", machines.ranks() / replica_size(recorded));
  YamlMap scenario;
  scenario.set("schema_version", 1).quote("name", files.front().stem().string()).below("workload", workload);
  scenario.set("strategy", YamlMap().set("name", options.strategy.empty() ? strategy_of_traces() : options.strategy));
  scenario.set("engine", YamlMap().set("name", model_engine().name));
  set_machines(scenario,
               {.name = machine, .workers = machines.workers, .devices = machines.devices, .gpu = options.gpu});
  imported.scenario = scenario.set("steps", 1).text();
  return imported;
}

}  // namespace tandem
