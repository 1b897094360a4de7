// Strategies by name: what a scenario's `strategy.name` refers to, and what must be known about a strategy before it
// runs.
//
// Threads: register before the first run; everything else may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/options.h"
#include "strategies/base/strategy_key.h"

namespace tandem {

class Device;
class Division;
class Strategy;
class Worker;
struct ParallelOptions;

struct StrategyOptions {
  std::vector<Device*> devices{};  // empty: all of the worker's
  std::string cross_device_ops = "auto";
  Packing packing{};
  VariablePlacement placement = VariablePlacement::round_robin;  // on parameter servers
  VariableUpdates updates = VariableUpdates::asynchronous;       // likewise
  StrategyValues own{};  // of the strategy's own keys; factories get all of them
};

using StrategyFactory = std::function<std::unique_ptr<Strategy>(Worker& worker, const StrategyOptions& options)>;

// Whether a strategy keeps variables on the tasks of the job "ps".
enum class ServerUse : std::uint8_t {
  none,
  optional,  // where the job has such tasks
  required,  // the same, and several workers need at least one
};

// A strategy that divides the model among the devices of the job, which form a mesh of data x tensor x pipeline.
struct ModelDivision {
  std::shared_ptr<const Division> how{};
  int ParallelOptions::*axis = nullptr;  // the axis of all devices; null: the user gives the sizes of the mesh
  bool micro_batches = false;            // reads ParallelOptions::micro_batches and virtual_stages
};

// How the published training runs distribute the work with which predictions were compared. Predictions of a strategy
// are expected to be as far off as those of the runs that it resembles.
enum class ComparedRuns : std::uint8_t {
  none,      // it resembles no such runs: how far off a prediction is, is not known
  replicas,  // gradients are reduced among replicas
  mesh,      // layers are divided over a mesh
  sharded,   // every device keeps a part of each layer, and gathers the others
  servers,   // variables are on parameter servers
  central,   // variables are on one device, for all replicas of a machine
};

// What is known about a strategy without making one.
struct StrategyInfo {
  std::string name;
  bool several_workers = false;  // may run on more than one worker
  ServerUse parameter_servers = ServerUse::none;
  bool one_device = false;                      // runs one replica on one device
  std::vector<std::string> cross_device_ops{};  // that can be chosen besides "auto"
  bool packs_tensors = true;                    // uses StrategyOptions::packing
  std::vector<StrategyKey> keys{};              // of scenarios, that this strategy alone reads
  ComparedRuns compared_as = ComparedRuns::none;
  bool is_registered = false;  // by a program: register_strategy() sets it
  // Exactly one of these: a strategy either replicates the model or divides it.
  StrategyFactory make{};
  std::optional<ModelDivision> division{};

  // Whether the user gives the sizes of the mesh, of which more machines are more replicas.
  bool has_free_mesh() const { return division && division->axis == nullptr; }
};

// Adds a strategy that the program defines. ValueError when the name is empty or taken, without exactly one factory,
// and for a key that is declared twice or is wrong (problem_of()).
void register_strategy(StrategyInfo info);

const StrategyInfo* find_strategy(std::string_view name);  // null for an unknown name
const StrategyInfo& strategy_info(std::string_view name);  // ValueError instead, with the known names and a suggestion

// ValueError for an unknown name, for a strategy that divides the model, and for options that its keys do not allow.
std::unique_ptr<Strategy> make_strategy(std::string_view name, Worker& worker, const StrategyOptions& options = {});

std::vector<std::string> strategy_names();  // sorted
std::string_view default_strategy_name();   // of a scenario that names none

}  // namespace tandem
