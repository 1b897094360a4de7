// Runs a case's program on every worker, also where the workers are in several processes.
#pragma once

#include <string_view>
#include <vector>

#include "tests/conformance/tf/case.h"

namespace tandem {

// Opens the engine and returns what the program came to on each worker, in worker order. Under mpirun every process
// calls this, and every process returns the results of all workers. Where the run fails, all of them throw the same
// error: that of the worker that has failed.
std::vector<Json> results_of_workers(EngineOptions options, std::string_view engine, const CaseWorld::Program& program);

}  // namespace tandem
