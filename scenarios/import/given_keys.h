// Which option, flag or key gives each part of an imported scenario.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/origins.h"
#include "scenarios/import/choices.h"
#include "scenarios/import/flags.h"
#include "scenarios/import/mesh_sizes.h"
#include "scenarios/import/titan/titan_job.h"

namespace tandem {

// For a model without a job. `file` is the model's, for messages.
std::vector<Origin> origins_of_options(const std::string& file, const ImportChoices& options);

// Options that were given come before what the file says.
std::vector<Origin> origins_of_flags(const Flags& flags, const ImportChoices& options);
std::vector<Origin> origins_of_job(const TitanJob& job, const ImportChoices& options);

// Returns the key of the scenario that says this of a mesh: "strategy.tensor".
std::string_view key_of_part(MeshPart part);

// Throws InputError for a size (a key of the scenario) at the first of its origins: an option, else what the file has.
// Axes of the mesh do not fit the devices that there are, which options give, too.
[[noreturn]] void refuse_size(const std::vector<Origin>& origins, const ImportChoices& options, std::string_view key,
                              const std::string& message);

}  // namespace tandem
