#include "strategies/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "strategies/base/errors.h"
#include "strategies/central_storage.h"
#include "strategies/mirrored.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/one_device.h"
#include "strategies/parameter_server.h"

namespace tandem {
namespace {

std::vector<Device*> devices_of(Worker& worker, const StrategyOptions& options) {
  if (!options.devices.empty()) return options.devices;
  return {worker.devices().begin(), worker.devices().end()};
}

using Table = std::map<std::string, StrategyFactory, std::less<>>;

Table& table() {
  static Table strategies = {
      {"one_device",
       [](Worker& worker, const StrategyOptions& options) {
         return std::make_unique<OneDeviceStrategy>(worker, *devices_of(worker, options).at(0));
       }},
      {"mirrored",
       [](Worker& worker, const StrategyOptions& options) {
         return std::make_unique<MirroredStrategy>(worker, devices_of(worker, options), options.cross_device_ops,
                                                   options.packing);
       }},
      {"multi_worker_mirrored",
       [](Worker& worker, const StrategyOptions& options) {
         return std::make_unique<MultiWorkerMirroredStrategy>(worker, MultiWorkerOptions{.packing = options.packing});
       }},
      {"central_storage",
       [](Worker& worker, const StrategyOptions& options) {
         return std::make_unique<CentralStorageStrategy>(worker, options.devices);
       }},
      {"parameter_server",
       [](Worker& worker, const StrategyOptions& options) {
         return std::make_unique<ParameterServerStrategy>(
             worker, options.devices, ParameterServerOptions{.placement = options.placement, .partitioner = {}});
       }},
  };
  return strategies;
}

}  // namespace

void register_strategy(std::string name, StrategyFactory factory) {
  if (!table().emplace(name, std::move(factory)).second)
    throw ValueError(fmt::format("strategy '{}' exists already", name));
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, Worker& worker, const StrategyOptions& options) {
  const auto found = table().find(name);
  if (found != table().end()) return found->second(worker, options);
  const std::vector<std::string> known = strategy_names();
  std::string message = fmt::format("unknown strategy '{}' (known: {})", name, fmt::join(known, ", "));
  if (const std::string near = nearest_name(name, known); !near.empty())
    message += fmt::format("; did you mean '{}'?", near);
  throw ValueError(message);
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : table()) names.push_back(name);
  return names;
}

}  // namespace tandem
