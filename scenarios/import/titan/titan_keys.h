// Keys of torchtitan's jobs that change the time of a step without being modelled, or that nothing here knows.
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/titan/titan_job.h"
#include "scenarios/import/titan/titan_values.h"

namespace tandem {

// Returns a sentence for each such key of a job that has been read, whose other keys count as read. Throws InputError
// for a value of another type.
std::vector<std::string> unmodelled_keys(const TitanValues& values, const TitanJob& job);

}  // namespace tandem
