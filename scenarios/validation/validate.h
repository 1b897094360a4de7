// Replays a folder of measurements (docs/validation.md).
#pragma once

#include <filesystem>
#include <functional>

#include "reports/validation.h"
#include "scenarios/validation/protocols.h"

namespace tandem {

// Reads every .json file of the folder and of those below it, in the order of their names. Throws InputError with the
// problems of all files. `progress` is called after each table; may be empty.
Validation validate_folder(const std::filesystem::path& folder, validation::Protocol protocol,
                           const std::function<void(int done, int total)>& progress = {});

}  // namespace tandem
