// Joins the processes over which an engine spreads a command.
#pragma once

#include "engine/engine_info.h"

namespace tandem {

// Joins the processes of the launch, or the tasks of TF_CONFIG's cluster; null where this process is alone, for null,
// and for engines whose runs stay in one process. The first signal to a task then ends all of them, in order. Throws as
// EngineInfo::join, and UnavailableError for a TF_CONFIG that describes no cluster of a run.
LaunchedJob* join_processes(const EngineInfo* engine);

}  // namespace tandem
