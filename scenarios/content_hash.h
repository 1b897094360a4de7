// A name for what a scenario says: equal for equal content, whatever its comments and layout.
#pragma once

#include <string>

namespace tandem {

struct Scenario;

// FNV-1a of 64 bits over the file's values, the model's layers, the data and the topology; 16 hexadecimal digits.
std::string content_hash(const Scenario& scenario);

}  // namespace tandem
