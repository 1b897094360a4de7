// Reads job configurations of torchtitan (TOML, or Python): docs/import.md lists the keys.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/import/base/input_file.h"
#include "scenarios/import/titan/titan_job.h"

namespace tandem {

// Whether the beginning of a file is such a configuration.
bool is_titan_job(std::string_view text);

// `name`: which configuration of a Python file; empty: the only one. Throws InputError for what is wrong, and for
// models whose sizes are not known here.
TitanJob read_titan_job(const InputFile& file, const std::string& name = "");

// Returns the flavor of llama3 with so many blocks, "8B"; empty: none whose sizes are known here.
std::string titan_flavor_of(std::int64_t blocks);

// Returns the schedule of a pipeline with this order, whose devices have one stage each, or several; empty: none.
std::string_view titan_schedule_of(PipelineOrder order, bool has_several_stages);

}  // namespace tandem
