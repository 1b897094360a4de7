// Reads what a scenario runs on: its engine, the machines and the devices there.
#pragma once

#include "scenarios/scenario.h"

namespace tandem {

class SharedParts;
class YamlReader;

// The map at `engine:`. What is wrong goes to the reader's diagnostics, here and below.
EngineSettings read_engine(const YamlReader& map);

// The value at `topology:`, into scenario.topology; one of `parts` where they have it. The scenario has its file and
// its name.
void read_topology_value(const YamlReader& value, SharedParts& parts, Scenario& scenario);

// The map at `devices:`, into scenario.devices. The scenario has its strategy, engine and topology.
void read_devices(const YamlReader& map, Scenario& scenario);

}  // namespace tandem
