// Flags of the command line that take the place of a scenario's own values. They are changes of its document, so that
// what the reader of scenarios says of a value in the file, it says of a flag's.
//
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "scenarios/scenario/scenario.h"

namespace tandem {

// Values are text, as people write them; "" is the scenario's own.
struct ScenarioFlags {
  std::string engine{};
  std::string device_type{};
  std::string replicas{};  // of each worker
  std::string workers{};
  std::string steps{};
  std::string cross_device_ops{};
  std::string values{};
  std::string collectives{};
  std::map<std::string, std::string> nccl{};  // override those of the scenario
  bool graphs = false;                        // true: even where the scenario does not ask for them
  bool symmetry = true, steady_state = true;  // false: even where the scenario leaves it to the engine
  std::shared_ptr<const Topology> topology{};
};

// Returns the scenario, which must have a document, with these flags and with what the launch decides, if this process
// was launched with others (settings_of_launch()). If another engine is chosen, the scenario keeps only those of its
// engine options that mean the same on every engine. The number of its devices changes with --replicas only, their type
// as device_type_for() says. Throws InputError, whose problems name flags; UnavailableError for an engine that does not
// exist; and what settings_of_launch() throws.
Scenario with_flags(const Scenario& scenario, const ScenarioFlags& flags);

// Returns the type of device to compute on: that of the flags; else GPUs if the flags choose an engine whose default
// device is a GPU; else that of the scenario. Throws UnavailableError for an engine that does not exist.
DeviceType device_type_for(const Scenario& scenario, const ScenarioFlags& flags);

}  // namespace tandem
