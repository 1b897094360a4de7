// The protocols of validation: each fits the model to some measurements and predicts others.
#pragma once

#include <string>
#include <vector>

#include "scenarios/validation/replay.h"

namespace tandem::validation {

enum class Protocol : std::uint8_t {
  links,      // fits nothing
  sizes,      // fits every other size of a table, predicts the rest
  ranks,      // fits fewer devices, predicts more
  nodes,      // fits one node, predicts several
  first_row,  // training: fits the device on the one-device row, predicts all others
};
std::vector<std::pair<std::string, Protocol>> protocol_words();
std::string name_of(Protocol protocol);

// Returns the predictions of a protocol, in the order of the tables.
std::vector<ValidationPoint> predict(Protocol protocol, const std::vector<ReplayedTable>& tables);

}  // namespace tandem::validation
