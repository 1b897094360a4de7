#include "scenarios/reading/strategy_reader.h"

#include <fmt/format.h>

#include <set>

#include "scenarios/scenario/words.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr int kMostMicroBatches = 1 << 20;
constexpr int kMostAlongAnAxis = 1 << 20;
constexpr int kMostVirtualStages = 1024;
constexpr int kMostBlocks = 10000;  // of a stage

void does_not_use(const YamlReader& entry, const std::string& strategy) {
  entry.error(fmt::format("strategy '{}' does not use it", strategy));
}

void read_packing(const YamlReader& map, StrategySettings& strategy) {
  strategy.num_packs = map.optional("num_packs").integer(0, 1000, strategy.num_packs);
  if (const YamlReader bytes = map.optional("bytes_per_pack")) {
    strategy.bytes_per_pack = static_cast<std::int64_t>(bytes.quantity(Dimension::bytes, {.most = 1e15}));
    if (map.has("num_packs")) bytes.error("cannot be given together with 'num_packs'");
  }
}

void read_placement(const YamlReader& map, const StrategyInfo* info, StrategySettings& strategy) {
  const YamlReader placement = map.optional("placement");
  if (!placement) return;
  strategy.placement = placement.one_of<VariablePlacement>({{"round_robin", VariablePlacement::round_robin},
                                                            {"by_size", VariablePlacement::by_size},
                                                            {"by_hash", VariablePlacement::by_hash}});
  if (info != nullptr && info->parameter_servers == ServerUse::none) {
    placement.error(fmt::format("strategy '{}' keeps no variables on parameter servers", strategy.name));
  }
}

void read_updates(const YamlReader& map, const StrategyInfo* info, StrategySettings& strategy) {
  const YamlReader updates = map.optional("updates");
  if (!updates) return;
  strategy.updates = updates_of(updates);
  const bool is_usual = strategy.updates == VariableUpdates::asynchronous;  // sweeps over strategies may set it
  if (!is_usual && info != nullptr && info->parameter_servers == ServerUse::none) {
    updates.error(fmt::format("strategy '{}' keeps no variables on parameter servers", strategy.name));
  }
}

// Reads the keys of strategies that divide the model, and refuses keys that the given strategy does not use.
void read_division(const YamlReader& map, const ModelDivision* division, StrategySettings& strategy) {
  MeshSettings& mesh = strategy.mesh;
  const auto read = [&](const char* key, int most, bool is_used, int& value) {
    const YamlReader entry = map.optional(key);
    if (!entry) return;
    value = entry.integer(1, most, value);
    if (!is_used && value != 1) does_not_use(entry, strategy.name);  // sweeps over strategies may set 1
  };
  const bool sizes_are_given = division != nullptr && division->axis == nullptr;
  read("micro_batches", kMostMicroBatches, division != nullptr && division->micro_batches, mesh.micro_batches);
  read("virtual_stages", kMostVirtualStages, division != nullptr && division->micro_batches, mesh.virtual_stages);
  if (const YamlReader blocks = map.optional("stage_blocks"); blocks.is_scalar()) {
    mesh.balances_stages = blocks.one_of<bool>({{"balanced", true}}, false);  // sweeps may set it for all strategies
  } else if (blocks) {
    for (const YamlReader& number : blocks.list()) mesh.stage_blocks.push_back(number.integer(0, kMostBlocks, 1));
    if (blocks.is_list() && mesh.stage_blocks.empty()) blocks.error("needs a number for each stage");
    if (division == nullptr || !division->micro_batches) does_not_use(blocks, strategy.name);
  }
  if (const YamlReader schedule = map.optional("schedule")) {
    mesh.order = schedule.one_of(pipeline_orders(), mesh.order);
    const bool is_usual = mesh.order == PipelineOrder::one_forward_one_backward;
    if (!is_usual && (division == nullptr || !division->micro_batches)) does_not_use(schedule, strategy.name);
  }
  if (const YamlReader exchange = map.optional("context_exchange")) {
    mesh.context_exchange = exchange.one_of(context_exchanges(), mesh.context_exchange);
    const bool is_usual = mesh.context_exchange == ContextExchange::all_gather;
    if (!is_usual && !sizes_are_given) does_not_use(exchange, strategy.name);
  }
  if (const YamlReader order = map.optional("axis_order")) {
    mesh.axis_order = order.one_of(axis_orders(), mesh.axis_order);
    const bool is_usual = mesh.axis_order == AxisOrder::tensor_data_pipeline;
    if (!is_usual && !sizes_are_given) does_not_use(order, strategy.name);
  }
  const auto read_switch = [&](const char* key, bool& value) {
    const YamlReader entry = map.optional(key);
    if (!entry) return;
    const bool usual = value;
    value = entry.boolean(usual);
    if (!sizes_are_given && value != usual) does_not_use(entry, strategy.name);  // sweeps may set the default
  };
  read_switch("scatter_gather", mesh.scatter_gather);
  read_switch("distributed_optimizer", mesh.distributed_optimizer);
  read_switch("overlap_gather", mesh.overlap_gather);
  read_switch("shard_parameters", mesh.shard_parameters);
  read_switch("overlap_experts", mesh.overlap_experts);
  read_switch("overlap_shared_expert", mesh.overlap_shared_expert);
  read("replicate", kMostAlongAnAxis, sizes_are_given, mesh.replicate);
  if (mesh.overlap_gather && !mesh.distributed_optimizer) {
    map.optional("overlap_gather").error("is for `distributed_optimizer: true`, which gathers parameters");
  }
  read("data", kMostAlongAnAxis, sizes_are_given, mesh.data);
  read("tensor", kMostAlongAnAxis, sizes_are_given, mesh.tensor);
  read("pipeline", kMostAlongAnAxis, sizes_are_given, mesh.pipeline);
  read("context", kMostAlongAnAxis, sizes_are_given, mesh.context);
  read("expert", kMostAlongAnAxis, sizes_are_given, mesh.expert);
  read("expert_tensor", kMostAlongAnAxis, sizes_are_given, mesh.expert_tensor);
  if (division == nullptr) return;
  if (strategy.cross_device_ops != "auto") does_not_use(map.optional("cross_device_ops"), strategy.name);
  for (const char* key : {"num_packs", "bytes_per_pack"}) {
    if (map.has(key)) does_not_use(map.optional(key), strategy.name);
  }
}

StrategyValue read_value(const YamlReader& entry, const StrategyKey& key) {
  switch (key.kind) {
    case StrategyKey::Kind::count:
      return entry.whole_number(static_cast<std::int64_t>(key.least), static_cast<std::int64_t>(key.most),
                                std::get<std::int64_t>(key.usual));
    case StrategyKey::Kind::number:
      return entry.number({.least = key.least, .most = key.most, .otherwise = std::get<double>(key.usual)});
    case StrategyKey::Kind::quantity: {
      const double value = entry.quantity(
          key.dimension, {.otherwise = std::get<double>(key.usual), .zero_allowed = key.least <= 0, .most = key.most});
      if (value < key.least) {
        entry.error(fmt::format("must be at least {}", format_quantity(key.least, key.dimension)));
      }
      return value;
    }
    case StrategyKey::Kind::boolean:
      return entry.boolean(std::get<bool>(key.usual));
    case StrategyKey::Kind::choice: {
      std::string word = entry.text(std::get<std::string>(key.usual));
      check_known(entry, key.name, word, key.choices);
      return word;
    }
    case StrategyKey::Kind::text:
      return entry.text(std::get<std::string>(key.usual));
  }
  TANDEM_UNREACHABLE("a StrategyKey::Kind outside its enumerators");
}

// Reads the keys that strategies have declared. One of another strategy must have its usual value, so that sweeps over
// strategies may give it to all.
void read_own(const YamlReader& map, const StrategyInfo* info, StrategySettings& strategy) {
  std::set<std::string> read;
  if (info != nullptr) {
    for (const StrategyKey& key : info->keys) {
      read.insert(key.name);
      if (const YamlReader entry = map.optional(key.name)) strategy.own.set(key.name, read_value(entry, key));
    }
  }
  for (const std::string& name : strategy_names()) {
    for (const StrategyKey& key : strategy_info(name).keys) {
      if (!map.has(key.name) || !read.insert(key.name).second) continue;
      const YamlReader entry = map.optional(key.name);
      if (read_value(entry, key) != key.usual) does_not_use(entry, strategy.name);
    }
  }
}

}  // namespace

VariableUpdates updates_of(const YamlReader& value) {
  return value.one_of<VariableUpdates>(
      {{"async", VariableUpdates::asynchronous}, {"sync", VariableUpdates::synchronous}});
}

StrategySettings read_strategy(const YamlReader& map) {
  StrategySettings strategy;
  const YamlReader name = map.optional("name");
  strategy.name = name.text(strategy.name);
  check_known(name, "strategy", strategy.name, strategy_names());
  const YamlReader operations = map.optional("cross_device_ops");
  strategy.cross_device_ops = operations.text(strategy.cross_device_ops);
  if (operations) {
    check_known(operations, "cross-device operations", strategy.cross_device_ops, cross_device_ops_names());
  }
  read_packing(map, strategy);
  const StrategyInfo* info = find_strategy(strategy.name);
  read_placement(map, info, strategy);
  read_updates(map, info, strategy);
  read_division(map, info != nullptr && info->division ? &*info->division : nullptr, strategy);
  read_own(map, info, strategy);
  return strategy;
}

}  // namespace tandem
