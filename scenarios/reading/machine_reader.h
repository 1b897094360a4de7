// Reads what a scenario runs on: its engine, its machines and their devices.
#pragma once

#include "scenarios/scenario/scenario.h"

namespace tandem {

class SharedParts;
class YamlReader;

// Reads the map at `engine:`. All functions here report problems to the reader's diagnostics.
EngineSettings read_engine(const YamlReader& map);

// Reads the value at `topology:` into scenario.topology, or takes it from `parts` where they have it. The scenario must
// have its file and its name.
void read_topology_value(const YamlReader& value, SharedParts& parts, Scenario& scenario);

// Reads the map at `devices:` into scenario.devices. The scenario must have its strategy, engine and topology.
void read_devices(const YamlReader& map, Scenario& scenario);

}  // namespace tandem
