// A name for the content of a scenario: equal for equal content, whatever the comments and the layout of its file.
#pragma once

#include <string>

namespace tandem {

struct Scenario;

// Returns the FNV-1a hash (64 bits, 16 hexadecimal digits) of the file's values, the model's layers, the data and the
// topology.
std::string content_hash(const Scenario& scenario);

}  // namespace tandem
