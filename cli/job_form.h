// Jobs of other programs as output: --format.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/common_options.h"
#include "scenarios/export/export.h"
#include "scenarios/import/base/origins.h"

namespace tandem {

// Adds --format: scenario, or a word of job_forms().
CLI::Option* add_format_option(CLI::App& command, std::string& format, const std::string& help);

// Returns nothing for "scenario".
std::optional<JobForm> job_form(const std::string& format);

// Writes a scenario as a job of that program to a file, "" or "-" for the standard output. What the program is not told
// goes to stderr, unless quiet. Throws InputError; of a scenario that was imported, at the `origins` of its parts.
void write_job(const Scenario& scenario, const std::vector<Origin>& origins, JobForm form, const std::string& file,
               const CommonOptions& common);

}  // namespace tandem
