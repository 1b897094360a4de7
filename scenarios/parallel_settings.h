// The strategies that divide the model itself: what a scenario says of them, and what they cannot do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"
#include "strategies/parallel/trainer.h"

namespace tandem {

class YamlReader;

bool is_parallel(std::string_view strategy);    // "fully_sharded", "tensor_parallel", "pipeline_parallel", "mesh"
std::vector<std::string> all_strategy_names();  // these and those of strategies/strategies.h, sorted

// The keys of such strategies in the map `strategy`. Reports keys that the named strategy does not use.
void read_mesh(const YamlReader& map, StrategySettings& strategy);

// The mesh over all of the scenario's devices.
ParallelOptions parallel_options(const Scenario& scenario);
// The scenario's model, without first weights.
LinearStack linear_stack(const MlpSettings& settings);
// How many devices compute one replica of the data; 1 for strategies that replicate the whole model.
int devices_of_one_replica(const Scenario& scenario);

// Why a scenario of such a strategy cannot run, and which of its values is to blame. Nothing for other strategies.
struct ParallelProblem {
  std::string path;
  std::string message;
};
std::optional<ParallelProblem> parallel_problem(const Scenario& scenario);

}  // namespace tandem
