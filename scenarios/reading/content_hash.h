// A hash of the content of a scenario, whatever the comments and the layout of its file.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

struct Scenario;

// Returns the FNV-1a hash (64 bits, 16 hexadecimal digits) of the file's values (except its sweep), the model's layers,
// the data and the topology.
std::string content_hash(const Scenario& scenario);

// Returns the hash of what decides the steps of a training that goes on in another run: the same without the topology,
// the numbers of steps, faults, and what is expected of the report.
std::string training_hash(const Scenario& scenario);

// Returns the same kind of hash of a text.
std::string text_hash(std::string_view text);

}  // namespace tandem
