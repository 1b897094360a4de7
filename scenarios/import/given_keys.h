// Which option, flag or key gives each part of an imported scenario.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/base/origins.h"
#include "scenarios/import/choices.h"
#include "scenarios/import/flags.h"
#include "scenarios/import/titan/titan_job.h"

namespace tandem {

// Of a model without a job. `file` is the model's, for messages.
std::vector<Origin> origins_of_options(const std::string& file, const ImportChoices& options);

// Options that were given come before what the file says.
std::vector<Origin> origins_of_flags(const Flags& flags, const ImportChoices& options);
std::vector<Origin> origins_of_job(const TitanJob& job, const ImportChoices& options);

}  // namespace tandem
