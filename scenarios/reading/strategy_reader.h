// Reads how a scenario is distributed.
#pragma once

#include "scenarios/scenario/scenario.h"

namespace tandem {

class YamlReader;

// Reads the map at `strategy:`. Reports problems to the reader's diagnostics.
StrategySettings read_strategy(const YamlReader& map);

// Reads `async` or `sync`; asynchronous where it is missing.
VariableUpdates updates_of(const YamlReader& value);

}  // namespace tandem
