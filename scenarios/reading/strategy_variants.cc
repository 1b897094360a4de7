#include "scenarios/reading/strategy_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "scenarios/reading/content_hash.h"
#include "scenarios/reading/scenario_document.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

constexpr int kMicroBatches = 4;

// The tasks that train, and the devices of each.
struct TrainingTasks {
  int workers = 1;
  int per_worker = 1;
  int servers = 0;
};

std::optional<TrainingTasks> evenly(int devices, int workers, int servers = 0) {
  if (workers < 1 || devices % workers != 0) return std::nullopt;
  return TrainingTasks{.workers = workers, .per_worker = devices / workers, .servers = servers};
}

std::optional<TrainingTasks> tasks_for(const StrategyInfo& info, int devices, int ranks) {
  if (info.one_device) return devices == 1 && ranks == 1 ? std::optional(TrainingTasks{}) : std::nullopt;
  if (devices == 1) return std::nullopt;
  if (info.parameter_servers == ServerUse::required) return evenly(devices, ranks > 1 ? ranks - 1 : devices, 1);
  if (ranks > 1) return info.several_workers ? evenly(devices, ranks) : std::nullopt;
  if (info.several_workers && !info.division) return evenly(devices, devices % 2 == 0 ? 2 : devices);
  return evenly(devices, 1);
}

// Divides the devices along data, tensor and pipeline.
std::array<int, 3> mesh_of(int devices) {
  std::array<int, 3> sizes{1, 1, 1};
  for (std::size_t axis = 0; devices % 2 == 0; axis = (axis + 1) % sizes.size(), devices /= 2) sizes[axis] *= 2;
  sizes[0] *= devices;
  return sizes;
}

// Returns the strategy and its settings, in YAML; nothing where the devices make no mesh of several axes.
std::optional<std::string> strategy_text(const StrategyInfo& info, int devices, const std::string& operations) {
  std::string text = "{name: " + info.name;
  if (operations != "auto") text += ", cross_device_ops: " + operations;
  if (info.division) {
    bool is_pipeline = info.division->axis != nullptr && info.division->micro_batches;
    if (info.division->axis == nullptr) {
      const auto [data, tensor, pipeline] = mesh_of(devices);
      if (tensor * pipeline == 1) return std::nullopt;
      text += fmt::format(", data: {}, tensor: {}, pipeline: {}", data, tensor, pipeline);
      is_pipeline = pipeline > 1;
    }
    if (is_pipeline) text += fmt::format(", micro_batches: {}", kMicroBatches);
  }
  return text + "}";
}

std::vector<std::string> operations_of(const StrategyInfo& info, const std::vector<std::string>& wanted) {
  if (info.cross_device_ops.size() < 2 || wanted.empty()) return {"auto"};
  return wanted;
}

Scenario variant_of(const Scenario& scenario, const std::optional<std::string>& strategy, const std::string& operations,
                    const TrainingTasks& tasks) {
  const std::string name = "--all";
  std::vector<ScenarioSetting> settings{{name, "sweep", "~"}};
  if (strategy) {
    settings.push_back({name, "strategy", *strategy});
  } else if (operations != "auto") {
    settings.push_back({name, "strategy.cross_device_ops", operations});
  }
  settings.push_back({name, "devices.workers", std::to_string(tasks.workers)});
  settings.push_back({name, "devices.per_worker", std::to_string(tasks.per_worker)});
  settings.push_back({name, "devices.ps", tasks.servers > 0 ? std::to_string(tasks.servers) : "~"});
  auto parts = scenario.parts ? std::make_shared<SharedParts>(*scenario.parts) : std::make_shared<SharedParts>();
  Scenario variant = read_scenario_document(with_settings(scenario.document, settings), *parts);
  variant.hash = content_hash(variant);
  variant.parts = std::move(parts);
  return variant;
}

// Returns the strategy in each of these ways to combine; none if it does not run on so many devices.
std::vector<StrategyVariant> variants_of_strategy(const Scenario& scenario, const StrategyInfo& info, int devices,
                                                  const std::vector<std::string>& operations, int ranks) {
  std::vector<StrategyVariant> variants;
  const std::optional<TrainingTasks> tasks = tasks_for(info, devices, ranks);
  if (!tasks) return variants;
  for (const std::string& operation : operations_of(info, operations)) {
    std::optional<std::string> strategy = strategy_text(info, devices, operation);
    if (!strategy) continue;
    const bool gives_mesh = info.division && info.division->axis == nullptr;
    if (info.name == scenario.strategy.name && !gives_mesh) strategy.reset();
    StrategyVariant variant{.strategy = info.name, .cross_device_ops = operation, .devices = devices};
    try {
      variant.scenario = variant_of(scenario, strategy, operation, *tasks);
    } catch (const InputError& error) {
      variant.refusal = error.diagnostics().front().message;
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace

std::vector<StrategyVariant> strategy_variants(const Scenario& scenario, std::span<const int> devices,
                                               const std::vector<std::string>& operations, int ranks) {
  std::vector<StrategyVariant> variants;
  for (const int count : devices) {
    for (const std::string& name : strategy_names()) {
      std::ranges::move(variants_of_strategy(scenario, strategy_info(name), count, operations, ranks),
                        std::back_inserter(variants));
    }
  }
  return variants;
}

}  // namespace tandem
