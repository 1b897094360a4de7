// A scenario's workload under every strategy, on several numbers of devices: what a comparison of all strategies runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario.h"

namespace tandem {

// One strategy on so many devices, all of which train.
struct StrategyVariant {
  std::string strategy;
  std::string cross_device_ops = "auto";
  int devices = 1;
  std::optional<Scenario> scenario{};  // empty: the strategy cannot train the workload on them
  std::string refusal{};               // why it cannot
};

// Returns the variants of every strategy that this program has, in the order of the numbers of devices. Strategies of
// one device are taken on one, all others on more:
//  - strategies that need parameter servers have one, and a worker for each device;
//  - strategies that replicate the model over workers have two workers where the number is even, else one a device;
//  - strategies whose mesh the user gives divide the devices by two along data, tensor and pipeline in turn, if that
//    makes two axes at least; those with micro-batches get four;
//  - all others have all devices on one worker.
// The scenario's own strategy keeps the settings it has there, unless they are sizes of a mesh. `operations`: the ways
// of strategies that can choose one ("auto" where empty). `ranks`: of a launch, each of which is one worker; 1: none.
std::vector<StrategyVariant> strategy_variants(const Scenario& scenario, std::span<const int> devices,
                                               const std::vector<std::string>& operations, int ranks = 1);

}  // namespace tandem
