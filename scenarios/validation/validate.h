// Replays a folder of measurements (docs/validation.md).
#pragma once

#include <filesystem>
#include <functional>

#include "reports/validation/validation.h"
#include "scenarios/validation/protocols.h"

namespace tandem {

// Replays every .json file of the folder and of those below it, in the order of their names. Calls `progress`, which
// may be empty, after each table. Files that cannot be read are left out; throws InputError with the problems of all
// files where none can.
Validation validate_folder(const std::filesystem::path& folder, validation::Protocol protocol,
                           const std::function<void(int done, int total)>& progress = {});

// Does the same with results of MLPerf as they are published (mlperf_results.h); `protocol` is links or first_row.
Validation validate_mlperf(const std::filesystem::path& folder, validation::Protocol protocol,
                           const std::function<void(int done, int total)>& progress = {});

}  // namespace tandem
