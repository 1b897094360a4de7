// Strategies by name: what a scenario's `strategy.name` refers to.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/strategy.h"
#include "strategies/parameter_server.h"

namespace tandem {

struct StrategyOptions {
  std::vector<Device*> devices{};  // empty: all of the worker's
  std::string cross_device_ops = "auto";
  Packing packing{};
  VariablePlacement placement = VariablePlacement::round_robin;  // on parameter servers
};

using StrategyFactory = std::function<std::unique_ptr<Strategy>(Worker& worker, const StrategyOptions& options)>;

// Adds a strategy of the user's own. ValueError when the name is taken. Not thread-safe: register before the run.
void register_strategy(std::string name, StrategyFactory factory);

// ValueError for an unknown name, with the known ones and a suggestion.
std::unique_ptr<Strategy> make_strategy(std::string_view name, Worker& worker, const StrategyOptions& options = {});

std::vector<std::string> strategy_names();  // sorted

}  // namespace tandem
