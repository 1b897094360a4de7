// Reads how a scenario is distributed.
#pragma once

#include "scenarios/scenario.h"

namespace tandem {

class YamlReader;

// The map at `strategy:`. What is wrong goes to the reader's diagnostics.
StrategySettings read_strategy(const YamlReader& map);

}  // namespace tandem
